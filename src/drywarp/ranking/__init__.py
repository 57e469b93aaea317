"""Which GPU runs a kernel fastest, or for the least power or money."""

from .order import rank
from .result import Ranking

__all__ = ["Ranking", "rank"]
