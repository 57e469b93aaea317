"""`drywarp doctor`: what is installed, and what each missing part would add."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import platform
import sys
from dataclasses import asdict, dataclass

from ..analysis.result import headed
from ..errors import DrywarpError
from ..frontends import cache
from ..frontends.amd.compile import compile_probe
from ..frontends.amd.metadata import amd_tool_versions, find_clang
from ..frontends.binary.sass import disassemble
from ..frontends.cache import release_of, tool_versions
from ..frontends.cuda.nvrtc import compile_program
from ..frontends.ptx.assembler import find_ptxas
from .output import print_json

_PROBE = "__global__ void probe(int* out) { out[threadIdx.x] = threadIdx.x; }"


@dataclass(frozen=True, slots=True)
class Part:
    """A component that drywarp uses. `state` is ``ok``, ``missing`` or ``broken``; `needed` parts must be ok."""

    name: str
    state: str
    version: str
    needed: bool
    purpose: str
    remedy: str = ""


def checkup() -> tuple[Part, ...]:
    """Check every part; compiles and disassembles a one-line kernel to verify that the toolchain works."""
    return (
        Part("Python", "ok", platform.python_version(), True, "runs drywarp"),
        _platform(),
        *_toolchain(),
        _clang(),
        _cache(),
        _assembler(),
        _package("triton", "compiles Triton kernels", "triton"),
        _package("numba_cuda", "compiles Numba kernels to PTX", "numba-cuda"),
        _package("kernel_tuner", "orders its search by drywarp's predictions", "kernel-tuner"),
        _package("zstandard", "reads zstd-compressed fat binaries and executables", "binaries"),
        _package("lz4", "reads LZ4-compressed fat binaries and executables", "binaries"),
        _package("matplotlib", "draws figures", "plot"),
        _package("pyarrow", "writes rows as Parquet", "parquet"),
        _package("distributed", "distributes sweeps over several machines", "dask"),
    )


def _platform() -> Part:
    here = f"{sys.platform} {platform.machine()}"
    supported = sys.platform == "linux" and platform.machine() in ("x86_64", "AMD64")
    remedy = "" if supported else "use Linux on x86-64: NVIDIA ships the compiler and disassembler for it"
    return Part("platform", "ok" if supported else "broken", here, True, "supported by NVIDIA's tools", remedy)


def _toolchain() -> tuple[Part, Part]:
    """Compile and disassemble a kernel, bypassing the cache."""
    versions = tool_versions()
    compiler, disassembler = "", ""
    try:
        cubin = compile_program(_PROBE, "probe.cu", ["--gpu-architecture=sm_80"]).cubin
    except DrywarpError as error:
        compiler, disassembler = str(error), "not tested: nothing to disassemble"
    else:
        try:
            disassemble(cubin, "probe.cu")
        except DrywarpError as error:
            disassembler = str(error)
    return (
        _tool("nvrtc", versions["nvrtc"], compiler, "compiles CUDA C++"),
        _tool("nvdisasm", versions["nvdisasm"], disassembler, "disassembles machine code"),
    )


def _clang() -> Part:
    """Compile an OpenCL kernel for an AMD GPU, bypassing the cache."""
    purpose = "compiles OpenCL C and HIP for AMD GPUs"
    try:
        found = find_clang()
        if found is None:
            return Part("clang", "missing", "", False, purpose, "pip install 'drywarp[amd]'")
        compile_probe(found)
    except DrywarpError as error:
        return Part("clang", "broken", "", False, purpose, str(error))
    return Part("clang", "ok", f"{found.major} of {found.origin}", False, purpose)


def _tool(name: str, version: str, failure: str, purpose: str) -> Part:
    if version == "missing":
        return Part(name, "missing", "", True, purpose, f"pip install nvidia-cuda-{name}")
    return Part(name, "broken" if failure else "ok", version, True, purpose, failure)


def _assembler() -> Part:
    purpose = "assembles PTX, including that of Numba kernels"
    try:
        path = find_ptxas()
    except DrywarpError as error:
        return Part("ptxas", "broken", "", False, purpose, str(error))
    if path is None:
        return Part("ptxas", "missing", "", False, purpose, "pip install 'drywarp[ptx]'")
    version = release_of(path)
    return Part("ptxas", "ok" if version else "broken", version, False, f"{purpose}: {path}")


def _package(name: str, purpose: str, extra: str) -> Part:
    label = name.replace("_", "-")
    if importlib.util.find_spec(name) is None:
        return Part(label, "missing", "", False, purpose, f"pip install 'drywarp[{extra}]'")
    return Part(label, "ok", importlib.metadata.version(name), False, purpose)


def _cache() -> Part:
    state = cache.usage()
    remedy = "" if state.writable else f"make {state.folder} writable, or set DRYWARP_CACHE_DIR"
    what = f"{state.entries} kernels"
    return Part("cache", "ok" if state.writable else "broken", what, False, f"stores kernels in {state.folder}", remedy)


def healthy(parts: tuple[Part, ...]) -> bool:
    """Whether every needed part is installed and works."""
    return all(part.state == "ok" for part in parts if part.needed)


def doctor_dict(parts: tuple[Part, ...]) -> dict[str, object]:
    """The documented JSON object."""
    return {
        **headed(**tool_versions(), **amd_tool_versions()),
        "healthy": healthy(parts),
        "parts": [asdict(part) for part in parts],
    }


def doctor_command(json: bool = False) -> int:
    """Check the installation; exit status 1 if a needed part is missing."""
    from ..report.tables import aligned

    parts = checkup()
    if json:
        print_json(doctor_dict(parts))
    else:
        rows = [[p.name, p.state, p.version, p.purpose + (f" ({p.remedy})" if p.remedy else "")] for p in parts]
        print("\n".join(aligned(rows)))
    return 0 if healthy(parts) else 1
