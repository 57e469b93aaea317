"""Compile CUDA C++ to a CUBIN with an installed nvcc: the optional last resort for sources that NVRTC rejects.

nvcc also runs the host compiler, so host headers are no obstacle. Its device code is the same as that of NVRTC of the
same version.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ...errors import CompileError, ToolError
from ..binary.signatures import demangled, without_parameters
from ..binary.signatures import plain_name as symbol_name
from ..cache import library_folders, programs, release_of, toolkit_folder
from . import RELOCATABLE
from .headers import DEVICE_LIBRARIES, header_folder
from .nvrtc import Compiled, Translation, first_error
from .source import includes, split_top

# Run a compiler that starts child processes, within a time limit; after that, kill all of them.


def run_limited(command: Sequence[str], seconds: float, environment: Mapping[str, str], name: str) -> tuple[int, str]:
    """Exit status and all output of a command. Raises ToolError if it cannot be run, or times out."""
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            text=True,
            errors="replace",
        )
    except OSError as error:
        raise ToolError(f"{name} cannot be run from {command[0]}: {error.strerror}") from None
    try:
        output, _ = process.communicate(timeout=seconds)
    except BaseException as error:
        # No separate process group: killing our group must also kill the compiler.
        for pid in reversed(_tree(process.pid)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.communicate()
        if isinstance(error, subprocess.TimeoutExpired):
            raise ToolError(f"{name} took longer than {seconds:g} s") from None
        raise
    return process.returncode, output


def _tree(root: int) -> list[int]:
    """A process and all of its descendants."""
    found = [root]
    for pid in found:
        with contextlib.suppress(OSError, ValueError):
            found += map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
    return found


VARIABLE = "DRYWARP_NVCC"
"""Environment variable with the path of the nvcc to use, or ``off``."""

SECONDS = 300
"""Time limit of nvcc for one file, in seconds."""

_OFF = ("off", "0", "no", "none")
_NEEDS_LINKING = re.compile(r"Unresolved extern|separate compilation mode|-rdc|requires relocatable", re.I)
_RELAXED = ("--expt-relaxed-constexpr", "--extended-lambda", "-allow-unsupported-compiler", "-w")
"""Flags that accept more sources without changing the generated code."""

_REMOVED = {
    "cudaThreadExit": "cudaDeviceReset",
    "cudaThreadSetCacheConfig": "cudaDeviceSetCacheConfig",
    "cudaThreadSetLimit": "cudaDeviceSetLimit",
    "cudaThreadSynchronize": "cudaDeviceSynchronize",
}
"""Host functions that CUDA 13 removed, and their replacements."""


def find_nvcc() -> Path | None:
    """Find nvcc: `$DRYWARP_NVCC`, then `$CUDA_HOME`, `$CUDA_PATH`, PATH and /usr/local/cuda.

    None if there is none, or if the variable is ``off``. Raises ToolError if the variable does not name a program.
    """
    chosen = os.environ.get(VARIABLE)
    if chosen:
        if chosen.lower() in _OFF:
            return None
        if not (os.path.isfile(chosen) and os.access(chosen, os.X_OK)):
            raise ToolError(f"{VARIABLE}={chosen}: no such program (expected the path of an nvcc, or off)")
        return Path(chosen)
    places = (*programs("nvcc"), Path("/usr/local/cuda/bin/nvcc"))
    return next((path for path in places if path.is_file() and os.access(path, os.X_OK)), None)


def nvcc_state(tool: Path) -> str:
    """Identifies an nvcc installation without running it."""
    state = tool.resolve().stat()
    return f"{tool} {state.st_size} {state.st_mtime_ns}"


def compile_with_nvcc(
    tool: Path, translation: Translation, arch: str, flags: Sequence[str], seconds: float = SECONDS
) -> Compiled:
    """Compile a source for `arch` (``sm_80``) with nvcc. `flags` are `-D`, `-I` and others, in NVRTC's spelling.

    Raises CompileError with nvcc's first error, ToolError if it cannot be run or takes longer than `seconds`.
    """
    name = f"nvcc {release_of(tool)}".strip()
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder) / "source.cu", Path(folder) / "source.cubin"
        # The #line directive maps line numbers to the user's file; -I with its folder resolves its includes.
        place = os.path.abspath(translation.origin).replace("\\", "\\\\").replace('"', '\\"')
        source.write_text(f'#line 1 "{place}"\n{translation.text}', encoding="utf-8")
        beside = [f"-I{translation.folder.resolve()}"] if translation.folder else []
        removed = [f"-D{old}={new}" for old, new in _REMOVED.items()]
        # pip's nvcc lacks the CUDA C++ core libraries (`nv/target`), as it lacks cuRAND: searched last, those of NVRTC
        # and our own stand in.
        instead = [f"-isystem={folder}" for folder in (header_folder() / "cccl", DEVICE_LIBRARIES)]
        libraries = [*(f"-I{library}" for library in library_folders()), *instead]
        fixed = ["-cubin", f"-arch={arch}", "-lineinfo", "-Xptxas=-v", *_RELAXED, str(source), "-o", str(made)]
        linked: list[str] = []
        while True:
            command = [str(tool), *fixed, *linked, *beside, *removed, *flags, *libraries]
            status, log = run_limited(command, seconds, {**os.environ, "TMPDIR": folder}, name)
            if status == 0 and made.exists():
                return Compiled(made.read_bytes(), log, {}, compiler=name)
            if linked or not _NEEDS_LINKING.search(log):
                raise CompileError(f"{name}: {first_error(log)}", log)
            linked = [RELOCATABLE]


# Code for separate compilation, linked as if this file were all.

_UNDEFINED = "Undefined reference"
NOT_LINKED = "not compiled for separate compilation (-rdc=true), but as a whole program: "
NO_LINKER = "there is no nvlink (pip install 'drywarp[ptx]', or one on PATH or in $CUDA_HOME)"
OPEN_CALLS = "calls functions that this file does not define; the prediction does not include them"


def link_alone(made: Compiled, arch: str) -> Compiled | str:
    """A relocatable CUBIN, linked by nvlink as if nothing else were to be linked; else why it could not be.

    Such code may differ from that of a whole program: ptxas cannot raise the alignment of shared variables then, and
    does not vectorize loads from them.
    """
    tool = find_nvlink()
    if tool is None:
        return NOT_LINKED + NO_LINKER
    with tempfile.TemporaryDirectory() as folder:
        given, linked = Path(folder) / "given.cubin", Path(folder) / "linked.cubin"
        given.write_bytes(made.cubin)
        command = [str(tool), f"-arch={arch}", str(given), "-o", str(linked)]
        try:
            status, log = run_limited(command, SECONDS, os.environ, "nvlink")
        except ToolError as error:
            return f"{NOT_LINKED}{error}"
        if status == 0 and linked.exists():
            return replace(made, cubin=linked.read_bytes())
        return OPEN_CALLS if _UNDEFINED in log else f"{NOT_LINKED}{first_error(log)}"


def find_nvlink() -> Path | None:
    """Pip's nvlink, that beside nvcc, or that in `$CUDA_HOME`, `$CUDA_PATH` or on PATH; None if there is none."""
    places = [*programs("nvlink")]
    with contextlib.suppress(ToolError):
        places.insert(0, toolkit_folder() / "bin" / "nvlink")
    with contextlib.suppress(ToolError):
        places += [nvcc.with_name("nvlink")] if (nvcc := find_nvcc()) else []
    return next((path for path in places if path.is_file() and os.access(path, os.X_OK)), None)


CURAND_STAND_IN = (
    "compiled with drywarp's stand-in for cuRAND, whose curand_init is cheaper for XORWOW states than cuRAND's own; "
    "pip install nvidia-curand has the real headers"
)


def curand_notes(translation: Translation) -> list[str]:
    """A note if the source includes cuRAND's device functions, which are not installed."""
    texts = (translation.text, *translation.bodies)
    used = any(name == "curand_kernel.h" for text in texts for name, _ in includes(text))
    return [CURAND_STAND_IN] if used and not library_folders() else []


def expressions_of(
    symbols: Sequence[str], expressions: Sequence[str], aliases: Mapping[str, str] | None = None
) -> Mapping[str, str]:
    """Map kernel names (templates with their arguments) to the symbols that nvcc emitted.

    Names without a symbol are left out: nvcc emits only the instances that the source itself uses. `aliases` are the
    type aliases of the source, which symbols do not know. If text does not settle which instance is meant, the only
    one of the template is.
    """
    known = {symbol: plain_name(demangled(symbol)) for symbol in symbols}
    found = {}
    for expression in expressions:
        meant = canonical(expression)
        matches = [symbol for symbol, name in known.items() if meant in (symbol, name)]
        # The rest of the template arguments may be defaults.
        begun = meant.removesuffix(">") + ("" if meant.endswith("<>") else ",")
        matches = matches or [symbol for symbol, name in known.items() if "<" in meant and name.startswith(begun)]
        if not matches and "<" in meant:
            matches = _by_meaning(known, expression, aliases or {})
        if len(matches) == 1:
            found[expression] = matches[0]
    return found


def _by_meaning(known: Mapping[str, str], expression: str, aliases: Mapping[str, str]) -> list[str]:
    """The symbols of an instance that is spelt otherwise: with aliases, enumerators, or an integer of the same size.

    An alias of a class's member has no meaning in text (`using K = Gemm<float>::Kernel`), and the library's demangler
    does not read every long symbol: then it is the template's only instance.
    """
    resolved = with_meanings(expression, aliases)
    for spelt in (canonical(resolved), canonical(expression)):
        alike = [symbol for symbol, name in known.items() if is_alike(spelt, name)]
        exact = [symbol for symbol in alike if known[symbol] == spelt]
        if alike:
            return exact or alike
    if not any(word in aliases for word in re.findall(r"\w+", expression.partition("<")[2])):
        return []
    template = canonical(expression).partition("<")[0]
    return [symbol for symbol in known if symbol.startswith("_Z") and symbol_name(symbol) == template]


def with_meanings(name: str, aliases: Mapping[str, str]) -> str:
    """The name with the aliases among its template arguments replaced by what they stand for."""
    for _ in range(4):  # an alias may refer to another alias; a circular one must terminate too
        name, opening, arguments = name.partition("<")
        name += opening + _QUALIFIED.sub(lambda m: aliases.get(m[0].split("::")[-1], m[0]), arguments)
    return name


_QUALIFIED = re.compile(r"(?<!:)\b[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*")


def is_alike(meant: str, name: str) -> bool:
    """Whether two canonical names may mean one instance: `long` and `long long` are of one size, and a
    symbol has the number of an enumerator, `(Mode)1`.
    """
    (template, _, wanted), (other, _, held) = (
        text.replace("longlong", "long").partition("<") for text in (meant, name)
    )
    ours, theirs = (split_top(text.removesuffix(">")) for text in (wanted, held))
    return (
        template == other
        and len(ours) == len(theirs)
        and all(
            one == two or (two[:1] == "(" and re.fullmatch(r"[A-Za-z_][\w:]*", one) is not None)
            for one, two in zip(ours, theirs, strict=True)
        )
    )


def plain_name(signature: str) -> str:
    """A kernel's name with its template arguments in a canonical spelling."""
    return canonical(without_parameters(signature))


def canonical(name: str) -> str:
    """The canonical spelling of a name: equal template arguments give equal text."""
    name = re.sub(r"\((?:unsigned |signed )?(?:int|long|long long|short|char|bool)\)", "", name)
    name = re.sub(r"\b__(?=half2?\b|nv_bfloat162?\b)", "", name)
    name = re.sub(r"\btrue\b", "1", re.sub(r"\bfalse\b", "0", name))
    name = re.sub(r"\b(\d+)[uUlL]+\b", r"\1", name)
    name = _NAMED.sub(lambda m: _INTEGERS.get(m[1], m[0]), name)
    return re.sub(r"\s+", "", _WORDS.sub(_integer, name)).removeprefix("::")


_INTEGERS = {
    "int8_t": "signed char", "uint8_t": "unsigned char", "int16_t": "short", "uint16_t": "unsigned short",
    "int32_t": "int", "uint32_t": "unsigned int", "int64_t": "long", "uint64_t": "unsigned long",
    "size_t": "unsigned long", "ptrdiff_t": "long", "ssize_t": "long", "intptr_t": "long", "uintptr_t": "unsigned long",
    "uint": "unsigned int", "ushort": "unsigned short", "ulong": "unsigned long", "uchar": "unsigned char",
}  # fmt: skip
"""What Linux's names of integers stand for."""
_NAMED = re.compile(r"(?<![\w:])(?:::)?(?:cuda::)?(?:std::)?(\w+)\b(?!::)")
_WORDS = re.compile(r"\b(?:unsigned|signed|long|short|int|char)\b(?:\s+(?:unsigned|signed|long|short|int|char)\b)*")


def _integer(words: re.Match[str]) -> str:
    """An integer type as the demangler spells it."""
    said = words[0].split()
    size = (
        "char" if "char" in said else "short" if "short" in said else " ".join(["long"] * said.count("long")) or "int"
    )
    return f"unsigned {size}" if "unsigned" in said else f"signed {size}" if {"signed", "char"} <= {*said} else size
