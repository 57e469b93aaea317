"""AMD machine code (GCN, CDNA) in the static mode."""

from .architecture import Amd, AmdWords
from .memory import dimensions

__all__ = ["Amd", "AmdWords", "dimensions"]
