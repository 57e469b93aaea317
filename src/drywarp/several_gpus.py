"""One kernel and launch on several GPUs: compiled and emulated once for each machine code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from .api import Options, bind_again, bind_kernel
from .errors import UsageError
from .hardware import Gpu, gpu_names, load_gpu
from .ready import BoundKernel

ALL = "all"

LAUNCH_KEYS = (
    "entry", "grid", "block", "args", "shared", "constants", "defines", "includes", "std", "max_registers", "config",
)  # fmt: skip
"""What `bind_kernel` takes of a launch and its compilation."""


def chosen_gpus(wanted: str | Path | Gpu | Sequence[str | Path | Gpu]) -> list[Gpu]:
    """The GPUs of a list, of ``"a100,h100"`` or of ``"all"`` (every product; none of the papers' GPUs).

    Raises UsageError for an unknown name, for one that is named twice, and for none.
    """
    names: list[str | Path | Gpu] = []
    for item in [wanted] if isinstance(wanted, str | Path | Gpu) else list(wanted):
        names += item.split(",") if isinstance(item, str) and not Path(item).is_file() else [item]
    if names == [ALL]:
        names = [name for name in gpu_names() if not name.startswith("papers/")]
    gpus = [item if isinstance(item, Gpu) else load_gpu(str(item).strip()) for item in names]
    if not gpus:
        raise UsageError("no GPU named (expected names such as a100,h100, or all)")
    seen: set[str] = set()
    for gpu in gpus:
        if gpu.name in seen:
            raise UsageError(f"GPU {gpu.name} is named twice")
        seen.add(gpu.name)
    return gpus


def launch_and_options(given: Mapping[str, Any], options: Options) -> tuple[dict[str, Any], Options]:
    """Keyword arguments sorted into what is said of the launch and fields of `Options`; None says nothing.

    Raises UsageError for any other.
    """
    known = {field.name for field in fields(Options)}
    launch = {key: value for key, value in given.items() if key in LAUNCH_KEYS and value is not None}
    if unknown := sorted(set(given) - known - set(LAUNCH_KEYS)):
        raise UsageError(f"unknown argument {unknown[0]!r} (expected {', '.join([*LAUNCH_KEYS, *sorted(known)])})")
    return launch, replace(options, **{key: value for key, value in given.items() if key in known})


class SeveralGpus:
    """Binds one kernel to one GPU after another; what only depends on the machine code is done once."""

    def __init__(self, source: object, launch: Mapping[str, Any], options: Options) -> None:
        """`launch` holds keys of `LAUNCH_KEYS`; raises UsageError for others."""
        if unknown := sorted(set(launch) - set(LAUNCH_KEYS)):
            raise UsageError(f"launch: unknown key {unknown[0]!r} (expected {', '.join(LAUNCH_KEYS)})")
        self._source, self._launch, self._options = source, dict(launch), options
        self._by_arch: dict[str, BoundKernel] = {}

    def bind(self, gpu: Gpu) -> BoundKernel:
        """The kernel on `gpu`."""
        known = self._by_arch.get(gpu.code_arch)
        if known is not None:
            return bind_again(known, gpu, self._options)
        ready = bind_kernel(self._source, gpu=gpu, options=self._options, **self._launch)
        # What is assumed of a launch, and which configuration is the best one, depends on the GPU.
        if ready.static is None and not ready.notes:
            self._by_arch[gpu.code_arch] = replace(ready, compile_s=0.0, emulate_s=0.0)
        return ready
