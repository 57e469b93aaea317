"""The compiler's bundled headers, unpacked once per compiler version, and stand-ins for host headers."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ...support.folders import cache_folder
from ..cache import tool_versions, toolkit_headers
from . import RELOCATABLE
from .host_code import TORCH
from .nvrtc import install_headers

_NAME = "drywarp-headers"
"""Folder name that distinguishes source lines in these headers from the user's (see `sass`)."""
_VERSIONED = ("cuda_fp*", "cuda_bf16.*", "cooperative_groups*", "cuda_pipeline*", "cuda_awbarrier*")


def header_folder() -> Path:
    """The folder of the bundled headers: in the cache, or a temporary one if the cache cannot be written.

    It is unpacked to a temporary folder and renamed, so that concurrent processes never see a partial folder.
    """
    name = f"{tool_versions()['nvrtc']} {toolkit_headers() or ''}"
    folder = cache_folder() / _NAME / re.sub(r"[^\w.]+", "-", name).strip("-")
    if os.path.isdir(folder):
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(dir=folder.parent))
    except OSError:
        return temporary_headers()
    try:
        _install(fresh)
        fresh.chmod(0o755)
        os.rename(fresh, folder)
    except OSError:
        # Another process was first, and its folder is just as good; or renaming is not possible.
        if not os.path.isdir(folder):
            return temporary_headers()
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return folder


@cache
def temporary_headers() -> Path:
    """A header folder that exists as long as this process."""
    root = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    folder = Path(root) / _NAME
    folder.mkdir()
    _install(folder)
    return folder


def _install(folder: Path) -> None:
    """Install the packaged compiler's headers; version-specific ones come from the user's toolkit if one is set."""
    install_headers(folder)
    toolkit = toolkit_headers()
    if toolkit is None:
        return
    for pattern in _VERSIONED:
        for old in folder.glob(pattern):
            shutil.rmtree(old) if old.is_dir() else old.unlink()
        for path in toolkit.glob(pattern):
            copy = shutil.copytree if path.is_dir() else shutil.copy
            copy(path, folder / path.name)


# Stand-ins for host headers that device code relies on implicitly, or that NVRTC lacks.
#
# With nvcc, a source sees the C library's integer types, the C++ library and more through host compiler headers.
# The stand-ins are drywarp's own, or map to NVIDIA's device headers. Each one is included only if the compiler
# misses a name that it defines.

HOST_HEADERS = Path(__file__).parent / "host_headers"
"""Stand-ins for host headers, which NVRTC does not include and device code rarely needs."""

DEVICE_LIBRARIES = HOST_HEADERS / "device_libraries"
"""Stand-ins for NVIDIA's device libraries; searched last, so that installed ones are used."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """A stand-in header to include before everything else, or a compiler flag."""

    header: str = ""
    flag: str = ""

    def flags(self) -> list[str]:
        """As the compiler takes it."""
        return [f"--pre-include={HOST_HEADERS / 'on_demand' / self.header}.h"] if self.header else [self.flag]


def _names(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.X)


_NAMES = (
    (_names(r"u?int(?:_least|_fast)?(?:8|16|32|64)_t | u?int(?:ptr|max)_t | U?INT(?:8|16|32|64|PTR)_\w+"), "integers"),
    (_names(r"(?:U?(?:CHAR|SHRT|INT|LONG|LLONG)|SCHAR)_(?:MIN|MAX|BIT)"), "limits"),
    (_names(r"(?:FLT|DBL)_\w+"), "float"),
    (_names(r"(?:__)?half2? | __float2half\w* | __half2float | h(?:exp|sqrt|max|min|add|mul|fma)2?"), "half"),
    (_names(r"(?:__)?nv_bfloat162?\w* | __float2bfloat16\w* | __bfloat162float"), "bfloat16"),
    (_names(r"cu(?:Float|Double)?Complex | cuC\w+ | make_cu\w*Complex"), "complex"),
    (_names(r"cufft\w+"), "cufft"),
    (_names(r"(?:cublas|cusparse|cusolver|cudnn)\w+ | ncclComm_t"), "libraries"),
    (_names(r"curand\w+"), "curand"),
    (_names(r"CU(?:texObject|surfObject|deviceptr)"), "driver"),
    (_names(r"cudaGraph\w+"), "graphs"),
    (
        _names(r"cuda(?:Malloc|Free|MemcpyAsync|MemsetAsync|Stream(?:Create|Destroy|NonBl)\w+|Get\w*Err\w+|Peek\w+)"),
        "launching",
    ),
)
"""Names that the compiler may miss, and the stand-in in `host_headers/on_demand` that defines them."""

_OF_NVCC = re.compile(r"\b(?:__NVCC__|__linux__|__unix__)\b")


def last_resort(texts: Iterable[str]) -> list[Remedy]:
    """Remedies to try if no specific one is known: macros of nvcc and the host, if the source asks for any."""
    return [Remedy("nvcc")] if any(_OF_NVCC.search(text) for text in texts) else []


_HOST_ONLY = frozenset(
    "string vector map set unordered_map unordered_set list deque queue stack ostream istream iostream cout cerr endl"
    " ifstream ofstream fstream stringstream ostringstream istringstream thread mutex exception runtime_error"
    " shared_ptr unique_ptr make_shared make_unique sort stable_sort shuffle mt19937 default_random_engine"
    " random_device uniform_real_distribution uniform_int_distribution normal_distribution to_string getline".split()
)
_CONTAINERS = (
    "vector list deque queue stack priority_queue map multimap set multiset unordered_map unordered_multimap"
    " unordered_set unordered_multiset unique_ptr shared_ptr weak_ptr function future basic_string string mutex"
    " condition_variable thread"
).split()
"""Types of the host's library that may be members of classes which device code takes: `on_demand/containers.h`."""
_HEADERS_OF_THE_HOST = """
algorithm any array atomic barrier bit bitset charconv chrono codecvt compare complex concepts condition_variable
coroutine deque exception execution expected filesystem format forward_list fstream functional future
initializer_list iomanip ios iosfwd iostream istream iterator latch limits list locale map memory memory_resource
mutex new numbers numeric optional ostream queue random ranges ratio regex scoped_allocator semaphore set
shared_mutex source_location span sstream stack stdexcept stop_token streambuf string string_view strstream
syncstream system_error thread tuple type_traits typeindex typeinfo unordered_map unordered_set utility valarray
variant vector version cctype cerrno cfenv cinttypes clocale csetjmp csignal cstdarg cstdbool ctgmath ctime cuchar
cwchar cwctype ccomplex complex.h ctype.h errno.h fenv.h inttypes.h iso646.h locale.h malloc.h memory.h setjmp.h
signal.h stdalign.h stdarg.h stdatomic.h stdbool.h stdnoreturn.h strings.h tgmath.h threads.h time.h uchar.h wchar.h
wctype.h values.h dirent.h dlfcn.h endian.h fcntl.h getopt.h libgen.h poll.h pthread.h sched.h semaphore.h
unistd.h alloca.h byteswap.h execinfo.h omp.h netdb.h pwd.h arpa/inet.h netinet/in.h sys/file.h sys/ioctl.h
sys/ipc.h sys/mman.h sys/param.h sys/resource.h sys/select.h sys/shm.h sys/socket.h sys/stat.h sys/sysinfo.h
sys/time.h sys/timeb.h sys/times.h sys/types.h sys/uio.h sys/un.h sys/utsname.h sys/wait.h xmmintrin.h emmintrin.h
immintrin.h x86intrin.h smmintrin.h cuda_profiler_api.h cudaProfiler.h cuda_gl_interop.h nvToolsExt.h
nvtx3/nvToolsExt.h nvml.h nvrtc.h builtin_types.h driver_types.h vector_functions.h texture_fetch_functions.h
texture_types.h surface_functions.h device_atomic_functions.h sm_20_atomic_functions.h channel_descriptor.h
driver_functions.h math_functions.h cuda_texture_types.h cuda_surface_types.h cuda_device_runtime_api.h
"""
"""Headers that host code may include; none of them is for device code."""

_UNDEFINED = re.compile(r'(?:identifier "([A-Za-z_]\w*)" is undefined|incomplete type "([A-Za-z_]\w*)")')
_OF_CONTAINERS = re.compile(
    rf'(?:identifier|namespace "std" has no (?:tag )?member(?: class| named)?) "(?:{"|".join(_CONTAINERS)})"'
    rf'|^"?(?:{"|".join(_CONTAINERS)})"? is not a template'
)
_A_CONTAINER = re.compile(rf"\bstd\s*::\s*(?:{'|'.join(_CONTAINERS)})\b")
_NO_MEMBER = re.compile(r'namespace "(std|cub|thrust)" has no (?:tag )?member (?:class |named )?"(\w+)"')
_NOT_A_NAMESPACE = 'name followed by "::" must be a class or namespace name'


def remedies_for(message: str, line: str) -> list[Remedy]:
    """Possible remedies for a compiler error on this source line; empty if none is known."""
    found = []
    if match := _UNDEFINED.search(message):
        found += [Remedy(header) for names, header in _NAMES if names.fullmatch(match[1] or match[2])]
    if (match := _NO_MEMBER.search(message)) and match[2] not in _HOST_ONLY:
        found.append(Remedy(match[1]))
    no_namespace = _NOT_A_NAMESPACE in message or '"std" is undefined' in message
    if _OF_CONTAINERS.search(message) or (no_namespace and _A_CONTAINER.search(line)):
        found.append(Remedy("containers"))
    elif _NOT_A_NAMESPACE in message or "is not a template" in message or "is undefined" in message:
        line = _A_CONTAINER.sub("", line)
        found += [Remedy(name) for name in ("cub", "thrust", "std") if re.search(rf"\b{name}\s*::", line)]
    if '"register" storage class' in message:
        found.append(Remedy(flag="-Dregister="))
    if "expected an expression" in message and re.search(r"[{,]\s*\.\w+\s*=", line):
        found.append(Remedy(flag="--std=c++20"))
    if "required runtime APIs are not declared" in message:
        found.append(Remedy("launching"))
    if "Unresolved extern" in message or "required runtime APIs are not declared" in message:
        # Functions in other files, or in the device runtime: leave the calls unresolved.
        found.append(Remedy(flag=RELOCATABLE))
    if message.startswith("#error"):
        found.append(Remedy("nvcc"))
    return found


def remedies_for_libraries(names: set[str]) -> list[Remedy]:
    """Remedies for the device types (such as element types) that host library headers would have provided."""
    found = []
    if any(name.startswith(("cublas", "cusparse", "cusolver")) for name in names):
        found += [Remedy("half"), Remedy("bfloat16"), Remedy("complex")]
    if any(name.startswith(("cublas", "cusparse", "cusolver", "cudnn", "nccl")) for name in names):
        found.append(Remedy("libraries"))
    if any(name.startswith("cufft") for name in names):
        found.append(Remedy("cufft"))
    if any(name.startswith(TORCH) for name in names):
        found.append(Remedy("torch"))
    return found


@cache
def _empty_headers() -> dict[str, str]:
    names = (name for line in _HEADERS_OF_THE_HOST.split("\n") for name in line.split())
    return {name: "" for name in names if not (HOST_HEADERS / name).exists()}


def empty_headers(own: Iterable[str]) -> dict[str, str]:
    """Empty texts for host library headers by name, except those that the source provides itself."""
    found = set(own)
    return {name: text for name, text in _empty_headers().items() if name not in found}


@cache
def stand_in_texts() -> tuple[tuple[str, bytes], ...]:
    """Name and content of every stand-in, because compilation results depend on them."""
    files = sorted(path for path in HOST_HEADERS.rglob("*") if path.is_file())
    return tuple((path.relative_to(HOST_HEADERS).as_posix(), path.read_bytes()) for path in files)
