"""CUDA C++ in, a `Kernel` out: compile, disassemble, parse, and give the parameters their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..errors import InputFileError, UsageError
from ..kernel.kernel import Kernel, Parameter
from . import cache
from .cubin import kernels_of
from .disassemble import disassemble
from .nvrtc import compile_program, install_headers
from .source import KernelDeclaration, find_kernels, includes
from .toolchain import tool_versions

HOST_HEADERS = Path(__file__).parent / "host_headers"
"""Stand-ins for headers of the host side, which NVRTC does not bring and device code rarely needs."""

INLINE_NAME = "kernel.cu"
"""The file name that the compiler is told for source that came as a string."""


@dataclass(frozen=True, slots=True)
class CudaOptions:
    """What a user may tell the compiler: `-D`, `-I`, `--std`, and the register cap."""

    defines: Mapping[str, str] | None = None
    includes: Sequence[str] = ()
    std: str | None = None
    max_registers: int | None = None

    def flags(self) -> list[str]:
        """The options as NVRTC spells them."""
        flags = [f"-D{name}={value}" if value else f"-D{name}" for name, value in (self.defines or {}).items()]
        flags += [f"-I{folder}" for folder in self.includes]
        if self.std:
            flags.append(f"--std={self.std}")
        if self.max_registers:
            flags.append(f"--maxrregcount={self.max_registers}")
        return flags


def read_source(path: Path) -> str:
    """The text of a source file. Raises InputFileError where there is none."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputFileError(f"{path}: no such file (expected CUDA C++ source)") from None
    except IsADirectoryError:
        raise InputFileError(f"{path}: is a folder (expected CUDA C++ source)") from None
    except UnicodeDecodeError:
        raise InputFileError(f"{path}: not text (expected CUDA C++ source)") from None
    except OSError as error:
        raise InputFileError(f"{path}: cannot be read ({error.strerror})") from None


def choose_entry(declared: Sequence[KernelDeclaration], entry: str | None, origin: str) -> KernelDeclaration:
    """The kernel that is meant. Raises UsageError naming those that the file holds."""
    names = ", ".join(d.name + ("<…>" if d.template else "") for d in declared)
    if not declared:
        raise UsageError(f"{origin}: no __global__ function found (expected a CUDA kernel)")
    if entry is None:
        if len(declared) > 1:
            raise UsageError(f"{origin}: several kernels, name one with --entry: {names}")
        if declared[0].template:
            raise UsageError(f"{origin}: {declared[0].name} is a template, name its arguments: --entry '{names}'")
        return declared[0]
    plain = entry.split("<")[0].strip().split("::")[-1]
    for candidate in declared:
        if candidate.name == plain:
            if candidate.template and "<" not in entry:
                raise UsageError(f"{origin}: {plain} is a template, name its arguments: --entry '{plain}<…>'")
            return candidate
    raise UsageError(f"{origin}: no kernel named {entry!r}; it holds: {names}")


def compile_cuda(
    source: str | Path,
    *,
    arch: str,
    entry: str | None = None,
    options: CudaOptions | None = None,
    defines: Mapping[str, str] | None = None,
) -> Kernel:
    """Compile one kernel for `arch` (``sm_80``). A `Path` is read; a string is the source itself.

    `entry` names the kernel where the file holds several, a template with its arguments. Raises
    CompileError with the compiler's own message, UsageError for an unknown entry.
    """
    options = options or CudaOptions(defines=defines)
    text = read_source(source) if isinstance(source, Path) else source
    origin = str(source) if isinstance(source, Path) else INLINE_NAME
    declared = find_kernels(text)
    declaration = choose_entry(declared, entry, origin) if declared or entry is None else None
    expression = entry or (declaration.name if declaration else "")
    folders = [str(source.parent)] if isinstance(source, Path) else []
    compiled = _compile(text, origin, arch, expression, options, folders)
    kernels = kernels_of(compiled.cubin, compiled.listing, arch, origin, compiled.log)
    symbol = compiled.symbols.get(expression, expression)
    if symbol not in kernels:
        raise UsageError(f"{origin}: no kernel named {expression!r}; it holds: {', '.join(kernels) or 'none'}")
    kernel = replace(kernels[symbol], name=expression, source_file=origin)
    return replace(kernel, parameters=_named(kernel.parameters, declaration)) if declaration else kernel


def _named(parameters: Sequence[Parameter], declaration: KernelDeclaration) -> tuple[Parameter, ...]:
    if len(parameters) != len(declaration.parameters):
        return tuple(parameters)
    return tuple(
        replace(parameter, name=declared.name, type=declared.type, pointer=declared.pointer)
        for parameter, declared in zip(parameters, declaration.parameters, strict=True)
    )


def _compile(
    text: str, origin: str, arch: str, expression: str, options: CudaOptions, folders: Sequence[str]
) -> cache.Entry:
    flags = [f"--gpu-architecture={arch}", "-lineinfo", "--ptxas-options=-v", *options.flags()]
    search = [*folders, *options.includes]
    bodies = _included_bodies(text, search)
    key = cache.key_of(text, origin, expression, *flags, *bodies, *sorted(tool_versions().values()))
    if (entry := cache.load(key)) is not None:
        return entry
    flags += [f"-I{folder}" for folder in folders]
    if includes(text):
        headers = _header_folder()
        flags += [f"-I{folder}" for folder in (headers, headers / "cccl", HOST_HEADERS)]
    compiled = compile_program(text, origin, flags, [expression])
    entry = cache.Entry(compiled.cubin, disassemble(compiled.cubin, origin), compiled.log, compiled.symbols)
    cache.store(key, entry)
    return entry


def _included_bodies(text: str, folders: Sequence[str]) -> list[str]:
    """Texts of all the user's files that are included, directly or not; they belong to the cache key."""
    bodies: list[str] = []
    seen: set[Path] = set()
    pending = [text]
    while pending:
        for name, _ in includes(pending.pop()):
            for folder in folders:
                path = Path(folder) / name
                if path.is_file() and path not in seen:
                    seen.add(path)
                    bodies.append(path.read_text(encoding="utf-8", errors="replace"))
                    pending.append(bodies[-1])
                    break
    return bodies


def _header_folder() -> Path:
    """The compiler's bundled headers, unpacked once per version of it."""
    folder = cache.cache_folder() / "headers" / tool_versions()["nvrtc"]
    marker = folder / ".complete"
    if not marker.exists():
        folder.mkdir(parents=True, exist_ok=True)
        install_headers(folder)
        marker.touch()
    return folder
