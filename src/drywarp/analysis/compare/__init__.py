"""What a change of a kernel costs or gains: two answers compared by GPU and by line."""

from .both_sides import compare
from .result import Comparison

__all__ = ["Comparison", "compare"]
