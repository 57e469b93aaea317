"""One kernel and launch on several GPUs: compiled and emulated once per machine code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from ..errors import UsageError
from ..hardware import Gpu, gpu_names, load_gpu
from .prepare import prepare, prepare_on
from .prepared import Prepared
from .request import LaunchRequest, Options

ALL = "all"


def chosen_gpus(wanted: str | Path | Gpu | Sequence[str | Path | Gpu]) -> list[Gpu]:
    """The GPUs of a list, of ``"a100,h100"`` or of ``"all"`` (all that run real kernels).

    Raises UsageError for an unknown name, a duplicate, or an empty list.
    """
    names: list[str | Path | Gpu] = []
    for item in [wanted] if isinstance(wanted, str | Path | Gpu) else list(wanted):
        names += item.split(",") if isinstance(item, str) and not Path(item).is_file() else [item]
    if names == [ALL]:
        return [gpu for gpu in map(load_gpu, gpu_names()) if not gpu.abstract_only]
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
    """Split keyword arguments into those of `LaunchRequest.of` (None: not given) and fields of `Options`.

    Raises UsageError for any other argument.
    """
    known = {field.name for field in fields(Options)}
    launch = {key: value for key, value in given.items() if key not in known and value is not None}
    LaunchRequest.of(None, **launch)  # rejects unknown arguments
    return launch, replace(options, **{key: value for key, value in given.items() if key in known})


class SeveralGpus:
    """Prepares one launch for several GPUs in turn; work that depends only on the machine code is done once."""

    def __init__(self, request: LaunchRequest, options: Options) -> None:
        self._request, self._options = request, options
        self._by_arch: dict[str, Prepared] = {}

    def prepare(self, gpu: Gpu) -> Prepared:
        """The launch, prepared for `gpu`."""
        known = self._by_arch.get(gpu.code_arch)
        if known is not None:
            return prepare_on(known, gpu, self._options)
        prepared = prepare(replace(self._request, gpu=gpu), self._options)
        # The assumptions about a launch and the best configuration depend on the GPU.
        if prepared.static is None and not prepared.notes:
            self._by_arch[gpu.code_arch] = replace(prepared, compile_s=0.0, emulate_s=0.0)
        return prepared
