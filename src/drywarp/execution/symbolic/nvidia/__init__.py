"""NVIDIA machine code (SASS) in the static mode: values from the emulator's opcode functions, plus flags."""

from .architecture import Nvidia
from .control import NvidiaWords
from .needed import dimensions, pointers

__all__ = ["Nvidia", "NvidiaWords", "dimensions", "pointers"]
