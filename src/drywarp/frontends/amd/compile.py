"""Turn OpenCL C, HIP or existing assembly into a `Kernel` for an AMD GPU."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ...errors import CompileError, ToolError, UsageError
from ...kernel.kernel import Kernel
from .. import cache
from ..cuda import CudaOptions
from ..cuda.compile import INLINE_NAME, declaration_of, with_names
from ..cuda.headers import HOST_HEADERS
from ..cuda.host_code import holds_host_code
from ..cuda.instances import instances
from ..cuda.nvrtc import Translation, gather
from ..cuda.repair import compile_repaired
from ..cuda.source import blank_comments, find_kernels, resolve, type_names
from ..loaded import chosen
from . import OPENCL, is_assembly, is_opencl
from .code import kernels_of
from .metadata import Clang, require_clang

AMD_HEADERS = Path(__file__).parent / "amd_headers"
"""drywarp's replacements for the OpenCL C and HIP headers, written with the backend's builtins."""

INLINE_OPENCL = "kernel.cl"
"""The file name given to the compiler for OpenCL C that came as a string."""

_ENTRY = "drywarp_entry"
_PROBE = "__kernel void probe(__global int* out) { out[get_global_id(0)] = 1; }\n"
_SECONDS = 120
_UNDEFINED = re.compile(r"([\w.$]+)@(?:rel32|gotpcrel32|abs32)@lo")
_DEFINED = re.compile(r"^([\w.$]+):|^\s*\.l?comm\s+([\w.$]+)", re.M)
_SHORT_FORM = re.compile(r"warning: drywarp: (\w+) is compiled in a short form")
_CLANG_ERROR = re.compile(r"^(.+?):(\d+):\d+: (?:fatal )?error: (.*)$", re.M)
_LEFT_OUT = re.compile(r"^\s*\.(byte|short|long|quad|ascii|asciz|cfi_\w+|p2align)\b")


def load_amd(source: str | Path, text: str, *, arch: str, entry: str | None, options: CudaOptions) -> Kernel:
    """Load one kernel for an AMD target (``gfx90a``) from OpenCL C, HIP or assembly.

    `text` is the content of `source`. Raises CompileError with the compiler's own message, UsageError for an
    unknown entry or assembly for another target, ToolError if no compiler is found.
    """
    origin = str(source) if isinstance(source, Path) else INLINE_NAME
    if options.max_registers:
        raise UsageError(f"{origin}: limit the registers of an AMD kernel in its source (amdgpu_num_vgpr)")
    if is_assembly(text):
        return _from_assembly(text, origin, arch, entry)
    if is_opencl(source, text):
        return _opencl(source, text, arch, entry, options)
    return _hip(source, text, arch, entry, options)


def amd_entries(source: str | Path, text: str, *, arch: str, options: CudaOptions) -> list[str]:
    """The names of the kernels in OpenCL C, HIP or assembly; of a template, the instances that host code launches."""
    origin = str(source) if isinstance(source, Path) else INLINE_NAME
    if is_assembly(text):
        return list(kernels_of(text, origin, arch))
    if is_opencl(source, text):
        clean = blank_comments(text)
        return list(dict.fromkeys(re.findall(r"\b(?:__kernel|kernel)\b[^;{}]*?\bvoid\s+(\w+)\s*\(", clean)))
    translation = gather(text, origin, source.parent if isinstance(source, Path) else None, _folders(options))
    plain = [d.qualified for body in (text, *translation.bodies) for d in find_kernels(body) if not d.template]
    return list(dict.fromkeys([*plain, *(one.expression for one in instances(translation))]))


def _from_assembly(text: str, origin: str, arch: str, entry: str | None) -> Kernel:
    kernels = kernels_of(text, origin, arch)
    found = next(iter(kernels.values())).arch
    if found != arch:
        raise UsageError(f"{origin}: assembly for {found}, but the GPU runs {arch}")
    return chosen(kernels, entry, origin)


def _opencl(source: str | Path, text: str, arch: str, entry: str | None, options: CudaOptions) -> Kernel:
    origin = str(source) if isinstance(source, Path) else INLINE_OPENCL
    if not OPENCL.search(blank_comments(text)):
        raise UsageError(f"{origin}: no __kernel function found (expected an OpenCL kernel)")
    translation = gather(text, origin, source.parent if isinstance(source, Path) else None, _folders(options))
    assembly, log = _compiled(translation, _opencl_flags(arch, options), lambda attempt: attempt(text, {}))
    kernels = kernels_of(assembly, origin, arch)
    # Clang emits a second copy of each kernel for calls from other kernels.
    kernel = chosen({n: k for n, k in kernels.items() if not n.startswith("__clang_ocl_kern_imp_")}, entry, origin)
    return replace(kernel, notes=_short_forms(log))


def _opencl_flags(arch: str, options: CudaOptions) -> list[str]:
    return [
        "-x", "cl", "-target", "amdgcn-amd-amdhsa", f"-mcpu={arch}", "-Xclang", "-finclude-default-header",
        "-Xclang", "-fdeclare-opencl-builtins", "-include", "opencl_functions.h", "-cl-kernel-arg-info",
        "-cl-uniform-work-group-size", *_macros(options),
        *options.clang_flags(INLINE_OPENCL), *([f"-cl-std={options.std}"] if options.std else []),
    ]  # fmt: skip


def compile_probe(clang: Clang) -> None:
    """Compile a tiny OpenCL C kernel, bypassing the cache, to check that a clang works.

    Raises CompileError or ToolError.
    """
    translation = gather(_PROBE, INLINE_OPENCL, None, [])
    _Attempt(clang, translation, _opencl_flags("gfx90a", CudaOptions()), "")(_PROBE, {})


def _hip(source: str | Path, text: str, arch: str, entry: str | None, options: CudaOptions) -> Kernel:
    origin = str(source) if isinstance(source, Path) else INLINE_NAME
    translation = gather(text, origin, source.parent if isinstance(source, Path) else None, _folders(options))
    declaration = declaration_of(text, translation.bodies, entry, origin)
    expression = entry or ""
    if declaration:
        expression = declaration.qualified + "".join((entry or "").partition("<")[1:])
    flags = [
        "-x", "hip", "--cuda-device-only", f"--offload-arch={arch}", "-nogpulib", "-nogpuinc", "-fdeclspec",
        "-fno-math-errno", "-nostdinc", "-nostdinc++", "-include", "hip/hip_runtime.h", "-Wno-everything",
        "-Wuser-defined-warnings", *_macros(options),
        *options.clang_flags(origin), *([f"-std={options.std}"] if options.std else []),
    ]  # fmt: skip
    # A pointer to the kernel instantiates a template, and reveals the symbol of the named kernel.
    asked = f'\nextern "C" __device__ __attribute__((used)) auto {_ENTRY} = &{expression};\n'

    def whole(attempt: _Attempt) -> tuple[str, str]:
        def part(text: str, headers: Mapping[str, str], more: Sequence[str]) -> tuple[str, str]:
            return attempt(text + asked, headers)

        try:
            return attempt(text + asked, {})
        except CompileError as error:
            if not holds_host_code(translation):
                raise
            return compile_repaired(translation, part, error, whole=True)

    assembly, log = _compiled(translation, flags, whole, expression)
    kernels = kernels_of(assembly, origin, arch)
    symbol = re.search(rf"^{_ENTRY}:\s*\n\s*\.quad\s+([\w.$]+)", assembly, re.M)
    if symbol is None or symbol[1] not in kernels:
        raise UsageError(f"{origin}: no kernel named {expression!r}; it holds: {', '.join(kernels) or 'none'}")
    kernel = replace(kernels[symbol[1]], name=entry or expression, notes=_short_forms(log))
    if declaration is None:
        return kernel
    names = type_names((*translation.bodies, text), options.defines)
    parameters = [resolve(parameter, names) for parameter in declaration.parameters]
    return replace(kernel, parameters=with_names(kernel.parameters, parameters))


class _Attempt:
    """Compiles a text with headers given as text, and returns assembly and log. Raises CompileError."""

    def __init__(self, clang: Clang, translation: Translation, flags: Sequence[str], expression: str) -> None:
        self.clang, self.translation, self.flags, self.expression = clang, translation, flags, expression

    def __call__(self, text: str, headers: Mapping[str, str]) -> tuple[str, str]:
        origin, folder = self.translation.origin, self.translation.folder
        with tempfile.TemporaryDirectory(prefix="drywarp-") as scratch:
            place = Path(scratch)
            for name, body in headers.items():
                header = (place / name).resolve()
                if header.is_relative_to(place.resolve()):
                    header.parent.mkdir(parents=True, exist_ok=True)
                    header.write_text(body, encoding="utf-8")
            main = place / "drywarp_main"
            main.write_text(f'#line 1 "{origin}"\n{text}', encoding="utf-8")
            command = [
                *self.clang.command, *self.flags, "-O3", "-S", "-gline-tables-only", "-fno-caret-diagnostics",
                "-nogpulib", "-mllvm", "-amdgpu-function-calls=0", f"-I{place}",
                *([f"-I{folder}"] if folder else []), f"-I{AMD_HEADERS}", f"-I{HOST_HEADERS}",
                str(main), "-o", "-",
            ]  # fmt: skip
            try:
                done = subprocess.run(command, capture_output=True, timeout=_SECONDS, check=False)
            except subprocess.TimeoutExpired:
                raise CompileError(f"{origin}: the compiler took longer than {_SECONDS} s") from None
            except OSError as error:
                raise ToolError(f"{self.clang.origin} cannot be run ({error.strerror})") from None
        log = done.stderr.decode("utf-8", "replace")
        if done.returncode:
            raise CompileError(_first_error(log, origin, self.expression), _as_nvrtc_spells(log))
        return done.stdout.decode("utf-8", "replace"), log


_Whole = Callable[[_Attempt], tuple[str, str]]


def _compiled(
    translation: Translation, flags: Sequence[str], compile_whole: _Whole, expression: str = ""
) -> tuple[str, str]:
    """Assembly and log, from the cache if available."""
    clang = require_clang()
    shared = (clang.version, *(path.read_text() for path in sorted(AMD_HEADERS.rglob("*.h"))))
    key = cache.key_of(translation.text, translation.origin, expression, *flags, *translation.bodies, *shared)
    if (entry := cache.load(key)) is not None:
        return entry.listing, entry.log
    assembly, log = compile_whole(_Attempt(clang, translation, flags, expression))
    undefined = sorted(
        set(_UNDEFINED.findall(assembly)) - {name for pair in _DEFINED.findall(assembly) for name in pair}
    )
    if undefined:
        names = ", ".join(dict.fromkeys(_plain(name) for name in undefined))
        raise CompileError(
            f"{translation.origin}: {names}: not defined (expected functions in the file or those listed in "
            "docs/amd.md; there is no device library)"
        )
    kept = "\n".join(line for line in assembly.splitlines() if not _is_ballast(line))
    cache.store(key, cache.Entry(b"", kept, log, {}))
    return kept, log


def _is_ballast(line: str) -> bool:
    """Whether a line is unused debug information or data; pointers to kernels are needed."""
    return _LEFT_OUT.match(line) is not None and not re.match(r"\s*\.quad\s+[A-Za-z_]", line)


def _first_error(log: str, origin: str, expression: str) -> str:
    found = _CLANG_ERROR.search(log)
    if found is None:
        reason = next((line for line in log.splitlines() if "error" in line), "the compiler failed")
        return f"{origin}: {reason.strip()}"
    if _ENTRY in log[: found.end()] or f"&{expression}" in found[0]:
        return f"{origin}: kernel {expression!r}: {found[3]}"
    return f"{found[1]}({found[2]}): error: {found[3]}"


def _as_nvrtc_spells(log: str) -> str:
    """Rewrite locations and missing-header errors in NVRTC's format, which `repair` parses."""
    text = re.sub(
        r"^(.+?):(\d+):\d+: fatal error: '([^']+)' file not found",
        r'\1(\2): catastrophic error: cannot open source file "\3"',
        log,
        flags=re.M,
    )
    return re.sub(r"^(.+?):(\d+):\d+: (?:fatal )?error:", r"\1(\2): error:", text, flags=re.M)


def _plain(symbol: str) -> str:
    """The plain name: `tgamma` for `_Z5tgammaf`."""
    match = re.match(r"_Z(\d+)", symbol)
    return symbol[match.end() : match.end() + int(match[1])] if match else symbol


def _short_forms(log: str) -> tuple[str, ...]:
    names = list(dict.fromkeys(_SHORT_FORM.findall(log)))
    if not names:
        return ()
    return (f"{', '.join(names)}: compiled in simplified form; AMD's device library uses more instructions",)


def _folders(options: CudaOptions) -> list[Path]:
    return [Path(folder) for folder in options.includes]


def _macros(options: CudaOptions) -> list[str]:
    flags = [f"-D{name}={value}" if value else f"-D{name}" for name, value in (options.defines or {}).items()]
    return flags + [f"-I{folder}" for folder in options.includes]
