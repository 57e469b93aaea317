"""drywarp dry-runs a GPU kernel: how long it will run on a named GPU, and what limits it, with no GPU.

import drywarp
result = drywarp.analyze("examples/tiled_matmul.cu", gpu="a100")
print(result.time_s, result.verdict)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from .api import Options, analyze
    from .errors import DrywarpError
    from .hardware import Gpu, gpu_names, load_gpu
    from .objects import surface, texture
    from .result import Analysis
    from .tensor_maps import tensor_map
    from .validation import validate

_HOMES = {
    "Analysis": "result", "Options": "api", "analyze": "api", "DrywarpError": "errors",
    "Gpu": "hardware", "gpu_names": "hardware", "load_gpu": "hardware", "surface": "objects",
    "tensor_map": "tensor_maps", "texture": "objects", "validate": "validation",
}  # fmt: skip

__all__ = [
    "Analysis",
    "DrywarpError",
    "Gpu",
    "Options",
    "__version__",
    "analyze",
    "gpu_names",
    "load_gpu",
    "surface",
    "tensor_map",
    "texture",
    "validate",
]


def __getattr__(name: str) -> Any:
    # Loaded on first use, so that importing drywarp costs next to nothing.
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(f".{_HOMES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
