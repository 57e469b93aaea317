"""A Python file with kernels in it: Triton's and Numba's functions, and CUDA C++ in strings."""

from __future__ import annotations

import ast
from pathlib import Path

from ...errors import InputFileError, UsageError
from ...kernel.kernel import Kernel
from ..cuda import CudaOptions, compile_cuda
from ..loaded import Deferred
from .discovery import JitFunction, jit_functions, kernels
from .embedded import chosen_source, embedded_sources
from .execution import define
from .numba_kernel import NumbaKernel, require_numba_cuda
from .numba_kernel import offline as numba_offline
from .packages import cupy_headers
from .quiet import diverted
from .triton_driver import offline as triton_offline
from .triton_driver import require_triton
from .triton_kernel import TritonKernel


def is_python(path: Path) -> bool:
    """Whether a file is taken for Python: by its name, as the text of a small one may be several languages."""
    return path.suffix == ".py"


def load_python(
    path: Path, text: str, *, arch: str, entry: str | None, options: CudaOptions
) -> tuple[Kernel | Deferred, str]:
    """The kernel that `entry` names, or the only one of the file, and its source where its lines are not the file's.

    A Triton or Numba function is defined by running what it needs of the file; CUDA C++ in a string is
    read without running anything. Raises InputFileError for a file that is no Python, UsageError for an
    unknown entry.
    """
    origin = str(path)
    try:
        tree = ast.parse(text, origin)
    except (SyntaxError, ValueError) as error:
        line = f":{error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        raise InputFileError(f"{origin}{line}: not Python: {getattr(error, 'msg', error)}") from None
    functions = jit_functions(tree)
    sources, passed = embedded_sources(tree, text, origin)
    by_name = {function.name: function for function in functions}
    if entry in by_name:
        return _defined(path, tree, by_name[entry], arch, options.max_registers), ""
    names = [f.name for f in kernels(functions)] + [name for source in sources for name in source.kernels]
    if entry is None:
        entry = _only(names, passed, origin)
        if entry in by_name:
            return _defined(path, tree, by_name[entry], arch, options.max_registers), ""
    elif entry.split("<")[0].strip().split("::")[-1] not in names:
        skipped = "".join(f"; {reason.removeprefix(origin + ':')}" for reason in passed)
        holds = ", ".join(dict.fromkeys(names)) or "none"
        raise UsageError(f"{origin}: no kernel named {entry!r}; it holds: {holds}{skipped and f' (line{skipped[1:]})'}")
    source = chosen_source(sources, entry, origin)
    # Where the file does not show the source line by line, it has lines of its own.
    name = origin if source.placed else f"{origin}:{source.line}:{entry}"
    merged = options.over(source.options).over(CudaOptions(includes=cupy_headers()))
    kernel = compile_cuda(source.text, arch=arch, entry=entry, options=merged, name=name)
    return kernel, "" if source.placed else source.text


def _only(names: list[str], passed: list[str], origin: str) -> str:
    distinct = list(dict.fromkeys(names))
    if len(distinct) == 1:
        return distinct[0]
    if distinct:
        raise UsageError(f"{origin}: several kernels, name one with --entry: {', '.join(distinct)}")
    if passed:
        raise UsageError(f"{passed[0]}; hand the finished object to drywarp.analyze from Python instead")
    raise UsageError(
        f"{origin}: no kernel found (expected a function under @triton.jit or @numba.cuda.jit, "
        "or CUDA C++ in a RawKernel, RawModule, load_inline, SourceModule or Program)"
    )


def _defined(path: Path, tree: ast.Module, function: JitFunction, arch: str, max_registers: int | None) -> Deferred:
    origin = str(path)
    if function.kind == "triton":
        require_triton(origin)
        with diverted(), triton_offline(arch, origin):
            made = define(path, tree, function.name)
        return TritonKernel(made, function.name, origin, max_registers)
    require_numba_cuda(origin)
    with diverted(), numba_offline(arch, origin):
        made = define(path, tree, function.name)
    if not hasattr(made, "py_func"):
        raise UsageError(f"{origin}:{function.line}: {function.name} is no kernel under @cuda.jit once defined")
    return NumbaKernel(made, function.name, origin, max_registers)
