"""A small space of a kernel that takes no time, for the tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parents[2] / "examples"
SAXPY = EXAMPLES / "saxpy.cu"
N = 16384


def space(**changes: Any) -> dict[str, Any]:
    """Twelve rows: six block sizes on two GPUs; roofline takes no time."""
    return {
        "kernel": str(SAXPY),
        "gpus": ["a100", "h100"],
        "parameters": {"bx": [64, 128, 256], "n": [N, 2 * N]},
        "problem": ["n"],
        "macros": [],
        "grid": "cdiv(n,bx)",
        "block": "bx",
        "args": {"n": "n", "a": 2.0, "x": "f32[n]:random", "y": "f32[n]:random"},
        "models": ["roofline"],
        **changes,
    }


FILE = f"""
kernel = "{SAXPY}"
gpus = ["a100", "h100"]
problem = ["n"]
macros = []
grid = "cdiv(n,bx)"
block = "bx"
models = ["roofline"]
parameters = {{ bx = [64, 128, 256], n = [{N}, {2 * N}] }}
args = {{ n = "n", a = 2.0, x = "f32[n]:random", y = "f32[n]:random" }}
"""
