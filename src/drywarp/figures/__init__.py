"""Answers as figures: SVG or PNG for papers, pages and notebooks, with Matplotlib (`pip install 'drywarp[plot]'`).

Each function takes a finished answer and draws what it holds; nothing is computed again. Matplotlib is loaded where a
figure is drawn, and not before.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from .bar import Bar
from .theme import THEMES

if TYPE_CHECKING:
    from .accuracy_scatter import predicted_over_measured
    from .benefit_chart import benefits
    from .canvas import Drawing
    from .execution_profile import profile
    from .free_lines import lines
    from .occupancy_curve import models, occupancy
    from .overlap_bars import overlap
    from .roofline_chart import roofline
    from .stall_bars import stalls
    from .time_bars import bars
    from .utilization_bars import utilization

OF_ANSWERS = {
    "occupancy": "every model's curve over occupancy, the launch marked",
    "roofline": "the kernel's rate under the roofs of each part of the machine",
    "benefits": "GPUPerf's potential benefits, memory to the right and computation upwards",
    "stalls": "warp time by stall reason",
    "utilization": "share of the time that each part of the machine is busy",
    "overlap": "share of the time that several subsystems are busy at once",
    "profile": "issue and completion of the first instructions, by subsystem",
}
"""The figures of an analysis, and what each shows."""
NEEDS_DETAIL = ("occupancy", "roofline", "benefits")
"""Those that show what only an answer with its detail holds; the curves of all models are among that."""
NEEDS_EVENTS = ("overlap", "profile")
"""Those for which single issues must have been followed."""
_HOMES = {
    "occupancy": "occupancy_curve", "models": "occupancy_curve", "roofline": "roofline_chart",
    "benefits": "benefit_chart", "stalls": "stall_bars", "utilization": "utilization_bars", "overlap": "overlap_bars",
    "profile": "execution_profile", "bars": "time_bars", "predicted_over_measured": "accuracy_scatter",
    "lines": "free_lines",
}  # fmt: skip
FORMATS = (".svg", ".png")


def check_installed() -> None:
    """Raise UsageError, with what to install, where Matplotlib is missing."""
    try:
        import_module("matplotlib")
    except ImportError:
        raise UsageError("figures need Matplotlib: pip install 'drywarp[plot]'") from None


def figure(answer: Any, name: str, **settings: Any) -> Drawing:
    """The figure of an analysis called `name` (see `OF_ANSWERS`). Raises UsageError for another name."""
    check_name(name)
    drawn: Drawing = __getattr__(name)(answer, **settings)
    return drawn


def check_name(name: str) -> None:
    """Raise UsageError for what is no figure of an analysis."""
    if name not in OF_ANSWERS:
        raise UsageError(f"figure {name!r}: expected one of {', '.join(OF_ANSWERS)}")


def check_place(path: Path, option: str) -> None:
    """Raise UsageError where a figure cannot be written for its ending or its folder, before anything takes time."""
    if path.suffix not in FORMATS:
        raise UsageError(f"{option} {path}: expected a file name that ends in {' or '.join(FORMATS)}")
    if path.is_dir() or not path.parent.is_dir():
        raise UsageError(f"{option} {path}: cannot be written (expected a file in a folder that exists)")
    check_installed()


def write(drawn: Drawing, path: Path, option: str) -> None:
    """Write a figure, in the format that the file's ending says. Raises UsageError where that cannot be done."""
    check_place(path, option)
    try:
        drawn.savefig(path)
    except OSError as error:
        raise UsageError(f"{option} {path}: cannot be written ({error.strerror})") from None


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    check_installed()
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)


__all__ = [
    "FORMATS",
    "NEEDS_DETAIL",
    "NEEDS_EVENTS",
    "OF_ANSWERS",
    "THEMES",
    "Bar",
    "bars",
    "benefits",
    "check_installed",
    "check_name",
    "check_place",
    "figure",
    "lines",
    "models",
    "occupancy",
    "overlap",
    "predicted_over_measured",
    "profile",
    "roofline",
    "stalls",
    "utilization",
    "write",
]
