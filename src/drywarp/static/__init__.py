"""What a kernel does, from its machine code alone: trip counts stated or derived, addresses without data."""

from .instruction_sets import INSTRUCTION_SETS, InstructionSet
from .parameters import StaticLaunch
from .profile import StaticProfile, assume_launch, list_loops, static_profile
from .report import AccessReport, Assumption, LoopReport, StaticReport
from .steering import Steering

__all__ = [
    "INSTRUCTION_SETS",
    "AccessReport",
    "Assumption",
    "InstructionSet",
    "LoopReport",
    "StaticLaunch",
    "StaticProfile",
    "StaticReport",
    "Steering",
    "assume_launch",
    "list_loops",
    "static_profile",
]
