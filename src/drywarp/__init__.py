"""drywarp dry-runs a GPU kernel: how long it will run on a named GPU, and what limits it, with no GPU.

import drywarp
result = drywarp.analyze("examples/tiled_matmul.cu", gpu="a100")
print(result.time_s, result.verdict)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:
    from .analysis.compare import Comparison, compare
    from .analysis.rank import Ranking, rank
    from .analysis.request import Options
    from .analysis.result import Analysis, Band
    from .analysis.stages import analyze
    from .errors import DrywarpError
    from .experiments.benefits import Benefits, benefits
    from .experiments.sweep import sweep
    from .experiments.sweep.space import Space
    from .experiments.validate import validate
    from .hardware import Gpu, gpu_names, load_gpu
    from .kernel.launch.textures import surface, tensor_map, texture

_HOMES = {
    "Comparison": "analysis.compare", "compare": "analysis.compare",
    "Ranking": "analysis.rank", "rank": "analysis.rank",
    "Analysis": "analysis.result", "Band": "analysis.result", "Options": "analysis.request",
    "analyze": "analysis.stages", "DrywarpError": "errors",
    "Gpu": "hardware", "gpu_names": "hardware", "load_gpu": "hardware",
    "surface": "kernel.launch.textures", "texture": "kernel.launch.textures", "tensor_map": "kernel.launch.textures",
    "Benefits": "experiments.benefits", "benefits": "experiments.benefits",
    "Space": "experiments.sweep.space", "sweep": "experiments.sweep", "validate": "experiments.validate",
}  # fmt: skip

__all__ = [
    "Analysis",
    "Band",
    "Benefits",
    "Comparison",
    "DrywarpError",
    "Gpu",
    "Options",
    "Ranking",
    "Space",
    "__version__",
    "analyze",
    "benefits",
    "compare",
    "gpu_names",
    "load_gpu",
    "rank",
    "surface",
    "sweep",
    "tensor_map",
    "texture",
    "validate",
]


def __getattr__(name: str) -> Any:
    # Loaded on first use, so that importing drywarp costs next to nothing.
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(f".{_HOMES[name]}", __name__), name)
    if name == "figures":
        from importlib import import_module

        return import_module(".report.figures", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
