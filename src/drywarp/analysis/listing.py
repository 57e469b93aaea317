"""Every kernel of a file, with its resources and a command that analyses it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import DrywarpError, UsageError
from ..frontends import load as frontend
from ..frontends.amd.compile import amd_entries
from ..frontends.binary import is_kept
from ..frontends.binary.module import Module, load_module
from ..frontends.cuda import CudaOptions
from ..frontends.cuda.compile import elsewhere
from ..frontends.formats import Source
from ..frontends.formats.own import launches_in, layouts_for
from ..frontends.loaded import LaunchComment, Loaded, entry_names
from ..frontends.ptx import is_ptx
from ..frontends.python import is_python
from ..frontends.python.listed import listed_kernels
from ..hardware import Gpu, load_gpu
from ..kernel.kernel import Kernel, Resources
from ..kernel.launch.arguments import parameter_name, signature
from ..kernel.launch.layout import root_of
from ..kernel.launch.structures import fields_in
from .lacking import command_words, lacking, ready_command
from .settle import from_host_code
from .without_data import arch_of


@dataclass(frozen=True)
class ListedKernel:
    """One kernel, under the name that ``--entry`` takes.

    `resources` is None if they depend on the arguments, or if there is no machine code: `reason` says why. `launch` is
    where that in `command` is from: ``comment``, ``kept in the file``, a file and line, or empty; `placeholders` are
    the parts of it that only stand for what is not known.
    """

    name: str
    signature: str = ""
    resources: Resources | None = None
    command: str = ""
    launch: str = ""
    placeholders: tuple[str, ...] = ()
    reason: str = ""


_MANY_FIELDS = 16
"""Fields of a structure from which host code is assumed to compute them."""


@dataclass(frozen=True)
class Listing:
    """The kernels of a file for a GPU."""

    file: str
    gpu: str
    arch: str
    kernels: tuple[ListedKernel, ...]
    notes: tuple[str, ...] = ()


def list_kernels(
    path: Path, *, gpu: str | Gpu = "a100", entry: str | None = None, options: CudaOptions | None = None
) -> Listing:
    """Every kernel of a file, or those that `entry` names.

    Raises UsageError if there is none, CompileError if the file does not compile, InputFileError if it cannot be read.
    """
    machine = gpu if isinstance(gpu, Gpu) else load_gpu(gpu)
    arch, given = arch_of(machine), options or CudaOptions()
    source = frontend.read_source(path)
    merged = given.over(source.comment.options)
    file, notes = _File(source, machine, given, merged, entry is not None), tuple[str, ...]()
    if is_python(path):
        found, notes = _of_python(file)
    elif machine.is_amd:
        names = amd_entries(path, source.text, arch=arch, options=merged)
        found = [_compiled(file, name) for name in names]
    else:
        module = load_module(path, arch=arch, options=given)
        found, notes = _of_module(file, module), module.notes
    if entry is not None:
        wanted = "".join(entry.split())
        found = [k for k in found if wanted in ("".join(k.name.split()), k.name.partition("<")[0].split("::")[-1])]
    if not found:
        python = "a function under @triton.jit or @numba.cuda.jit, or CUDA C++ in a string"
        wanted = python if is_python(path) else "a __global__ function"
        expected = "" if entry else f" (expected {wanted}{elsewhere(path)})"
        raise UsageError(f"{path}: no kernel{f' named {entry!r}' if entry else ' found'} for {machine.name}{expected}")
    return Listing(str(path), machine.name, arch, tuple(found), notes)


@dataclass(frozen=True)
class _File:
    """The file and the GPU; the user's options, and these with those of the launch comment; how much is shown."""

    source: Source
    gpu: Gpu
    given: CudaOptions
    options: CudaOptions
    all_fields: bool = False

    def words(self, name: str) -> list[str]:
        return command_words(self.source.given, self.gpu, name, self.given)


def _of_module(file: _File, module: Module) -> list[ListedKernel]:
    names = entry_names((kernel.symbol for kernel in module.kernels), instances=bool(file.source.text))
    if file.source.text:
        # Instances that a source names explicitly, `template __global__ void k<int>(…);`, lack their arguments.
        bare = {kernel.symbol for kernel in module.kernels if "<" not in kernel.name}
        names = {symbol: name for symbol, name in names.items() if symbol in bare and "<" in name}
    # Compilers add functions of their own, such as `__cuda_sm70_shflsync_idx_p`.
    held = [kernel for kernel in module.kernels if not kernel.symbol.startswith("__cuda_sm")]
    few = len(held) <= _MOST_LAYOUTS
    found = [_listed(file, kernel, names.get(kernel.symbol, kernel.name), len(held) == 1, few) for kernel in held]
    return [*found, *(ListedKernel(f"{name}<…>", reason=_NO_INSTANCE) for name in module.uninstantiated)]


_MOST_LAYOUTS = 12
"""Maximum kernels in a file for which the fields of structures are looked up: each needs its own build."""
_NO_INSTANCE = "a template: no launch in the file gives its arguments; --entry 'NAME<…>' names an instance"
_DEFERRED = "compiled for its arguments: its registers are known once these are"


def _compiled(file: _File, name: str) -> ListedKernel:
    """A kernel that is compiled on its own; the reason if that fails."""
    try:
        loaded = frontend.load(file.source.given, arch=arch_of(file.gpu), entry=name, options=file.given, gpu=file.gpu)
    except DrywarpError as error:
        return ListedKernel(name, reason=str(error))
    assert isinstance(loaded.kernel, Kernel)
    return _listed(file, loaded.kernel, name, False)


def _of_python(file: _File) -> tuple[list[ListedKernel], tuple[str, ...]]:
    source, comment = file.source, file.source.comment
    if file.gpu.is_amd:
        raise UsageError(f"{source.origin}: for NVIDIA GPUs, but the GPU runs {arch_of(file.gpu)}")
    known, passed = listed_kernels(Path(source.origin), source.text)
    found = []
    for name, values in known.items():
        if values is None:
            found.append(_compiled(file, name))
            continue
        takes = [key for key in values if key not in ("block", "config")]
        kept = comment.grid and comment.entry in (None, name) and {*takes} <= comment.arguments.keys()
        stand_ins = {} if kept else {"grid": "1024", **values}
        words = file.words(name)
        for key, value in stand_ins.items():
            words += [f"--{key}", value] if key in ("grid", "block", "config") else ["--arg", f"{key}={value}"]
        where = "comment" if kept else ""
        found.append(ListedKernel(name, ", ".join(takes), None, shlex.join(words), where, tuple(stand_ins), _DEFERRED))
    return found, tuple(passed)


def _listed(file: _File, kernel: Kernel, name: str, alone: bool, layouts_wanted: bool = True) -> ListedKernel:
    if is_kept(file.source.data):
        return ListedKernel(name, signature(kernel), kernel.resources, shlex.join(file.words(name)), "kept in the file")
    source, comment, names = file.source, file.source.comment, {parameter_name(p) for p in kernel.parameters}
    roots = {root_of(key, names) for key in comment.arguments}
    if not _is_about(comment, name) or not (alone or comment.entry or roots <= names):
        comment = LaunchComment()
    launches = launches_in(source, file.options) if source.text else None
    is_cuda = source.text and not file.gpu.is_amd and not is_ptx(source.text)
    layouts = layouts_for(source, arch_of(file.gpu), name, file.options) if is_cuda and layouts_wanted else None
    # Fields are worth a second build, but not a failure.
    loaded = Loaded(kernel, comment, launches=launches, layouts=layouts).with_fields({}, {})
    assert isinstance(loaded.kernel, Kernel)
    kernel = loaded.kernel
    stated = from_host_code(loaded, kernel, None, None, None, None)
    arguments = {key: value for key, value in stated.comment.arguments.items() if root_of(key, names) in names}
    lacks = tuple(lacking(kernel, stated.comment, arguments, stated.open))
    command = ready_command(file.words(name), kernel, stated.comment, arguments, stated.open)
    where = stated.place or ("comment" if comment.grid or comment.block else "")
    shown = signature(kernel, *((_ALL,) if file.all_fields else ()))
    return ListedKernel(name, shown, kernel.resources, command, where, lacks, _computed_by_host(file, kernel, lacks))


_ALL = 1_000_000


def _computed_by_host(file: _File, kernel: Kernel, lacks: Sequence[str]) -> str:
    """A way to the values of structures with many fields, such as the parameter blocks of CUTLASS."""
    counts = {parameter_name(p): len(fields_in(p)) for p in kernel.parameters}
    many = [f"{name} has {counts[name]} fields" for name in lacks if counts.get(name, 0) >= _MANY_FIELDS]
    if not many:
        return ""
    program = "PROGRAM"
    if re.search(r"\bmain\s*\(", file.source.text or ""):
        words = command_words(file.source.given, file.gpu, "", file.given)[2:]
        program = shlex.join([*words[3:], words[0]])
    return (
        f"{', '.join(many)}, which host code computes: drywarp run --keep DIR {program} runs the program with its own, "
        "and keeps each launch for analyze"
    )


def _is_about(comment: LaunchComment, name: str) -> bool:
    return comment.entry is None or comment.entry.partition("<")[0].strip() in (name, name.partition("<")[0].strip())
