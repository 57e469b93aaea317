"""drywarp dry-runs a GPU kernel: how long it will run on a named GPU, and what limits it, with no GPU.

import drywarp
result = drywarp.analyze("examples/tiled_matmul.cu", gpu="a100")
print(result.time_s, result.verdict)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from .advice import analyze
    from .api import Options
    from .comparison import Comparison, compare
    from .errors import DrywarpError
    from .hardware import Gpu, gpu_names, load_gpu
    from .objects import surface, texture
    from .ranking import Ranking, rank
    from .result import Analysis, Band
    from .sweeps import Space, sweep
    from .tensor_maps import tensor_map
    from .validation import validate

_HOMES = {
    "Comparison": "comparison", "compare": "comparison", "Ranking": "ranking", "rank": "ranking",
    "Analysis": "result", "Band": "result", "Options": "api", "analyze": "advice", "DrywarpError": "errors",
    "Gpu": "hardware", "gpu_names": "hardware", "load_gpu": "hardware", "surface": "objects",
    "Space": "sweeps", "sweep": "sweeps",
    "tensor_map": "tensor_maps", "texture": "objects", "validate": "validation",
}  # fmt: skip

__all__ = [
    "Analysis",
    "Band",
    "Comparison",
    "DrywarpError",
    "Gpu",
    "Options",
    "Ranking",
    "Space",
    "__version__",
    "analyze",
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

        return import_module(".figures", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
