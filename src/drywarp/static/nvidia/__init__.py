"""NVIDIA machine code (SASS) in the static mode: values by the emulator's functions of opcodes, flags beside them."""

from .architecture import Nvidia
from .control import NvidiaWords
from .reads import dimensions, pointers

__all__ = ["Nvidia", "NvidiaWords", "dimensions", "pointers"]
