"""The packaged GPUs but those of papers, each loaded when it is first asked for, once for all files of tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

from drywarp.hardware import Gpu, gpu_names, load_gpu


class Packaged(Mapping[str, Gpu]):
    """GPUs by name. To collect tests takes the names alone, and loading all GPUs takes half a second."""

    def __getitem__(self, name: str) -> Gpu:
        return _loaded(name)

    def __iter__(self) -> Iterator[str]:
        return (name for name in gpu_names() if not name.startswith("papers/"))

    def __len__(self) -> int:
        return sum(1 for _ in self)


_loaded = cache(load_gpu)
GPUS = Packaged()
