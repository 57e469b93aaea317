"""What a change of a kernel costs or gains: two answers side by side, GPU by GPU and line by line."""

from .both_sides import compare
from .result import Comparison

__all__ = ["Comparison", "compare"]
