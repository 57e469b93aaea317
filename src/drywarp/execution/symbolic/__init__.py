"""What a kernel does, from its machine code alone: trip counts stated or derived, addresses without data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .hints import Hints
    from .instruction_sets import INSTRUCTION_SETS, InstructionSet
    from .parameters import StaticLaunch
    from .profile import BriefWalk, StaticProfile, assume_launch, list_loops, static_profile
    from .report import AccessReport, Assumption, LoopReport, StaticReport

_HOMES = {
    "INSTRUCTION_SETS": "instruction_sets", "AccessReport": "report", "Assumption": "report",
    "BriefWalk": "profile", "InstructionSet": "instruction_sets", "LoopReport": "report", "StaticLaunch": "parameters",
    "StaticProfile": "profile", "StaticReport": "report", "Hints": "hints", "assume_launch": "profile",
    "list_loops": "profile", "static_profile": "profile",
}  # fmt: skip

__all__ = [
    "INSTRUCTION_SETS",
    "AccessReport",
    "Assumption",
    "BriefWalk",
    "Hints",
    "InstructionSet",
    "LoopReport",
    "StaticLaunch",
    "StaticProfile",
    "StaticReport",
    "assume_launch",
    "list_loops",
    "static_profile",
]


def __getattr__(name: str) -> Any:
    # Loaded on first use: it imports the emulator's opcodes.
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(f".{_HOMES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
