"""AMD machine code (GCN, CDNA) in the static mode."""

from .architecture import Amd
from .control import AmdWords
from .start import dimensions

__all__ = ["Amd", "AmdWords", "dimensions"]
