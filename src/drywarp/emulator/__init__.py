"""Functional emulation of machine code: what every warp of some sampled blocks does, and to which addresses."""

from .content import buffer_content
from .limits import Limits
from .run import emulate
from .sampling import sample_blocks
from .session import Emulation

__all__ = ["Emulation", "Limits", "buffer_content", "emulate", "sample_blocks"]
