"""Results as figures: SVG or PNG for papers, pages and notebooks, with Matplotlib (`pip install 'drywarp[plot]'`).

Each function takes a finished result and draws its contents; nothing is recomputed. Matplotlib is loaded only when a
figure is drawn.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import UsageError
from .theme import THEMES, Bar

if TYPE_CHECKING:
    from .bar_charts import bars, overlap, stalls, utilization
    from .benefit_charts import bars_of_kernels, benefits_of_kernels, study
    from .canvas import Drawing
    from .execution_profile import abstract_profile, lines, papers_figure, profile
    from .occupancy_curve import models, mwp_cwp, occupancy, wfg
    from .roofline_chart import instruction_roofline, roofline
    from .scatter_charts import benefits, predicted_over_measured

OF_ANSWERS = {
    "occupancy": "every model's occupancy curve, with the launch marked",
    "roofline": "FLOP/s over arithmetic intensity, under the pipes' peak rates and the bandwidths of L2 and DRAM",
    "instruction_roofline": "the kernel's instructions per cycle under the roofs of each part of the GPU",
    "benefits": "GPUPerf's potential benefits, with memory on x and computation on y",
    "stalls": "warp time by stall reason",
    "utilization": "fraction of the time that each part of the GPU is busy",
    "overlap": "fraction of the time that several subsystems are busy at once",
    "profile": "issue and completion of the first instructions, by subsystem",
}
"""The figures of an analysis, with their contents."""
OF_COMPARISONS = {
    "mwp_cwp": "MWP and CWP over the warps of an SM, with Hong and Kim's three cases marked",
    "wfg": "the cycles on the arcs of the work-flow graph, over occupancy",
}
"""The figures of all models on one workload, besides their curves."""
NEEDS_DETAIL = ("occupancy", "roofline", "instruction_roofline", "benefits")
"""Figures that need a result with detail, such as the curves of all models."""
NEEDS_EVENTS = ("overlap", "profile")
"""Figures that need recorded issue events."""
_HOMES = {
    "bar_charts": ("bars", "overlap", "stalls", "utilization"),
    "benefit_charts": ("bars_of_kernels", "benefits_of_kernels", "study"),
    "execution_profile": ("abstract_profile", "lines", "papers_figure", "profile"),
    "occupancy_curve": ("models", "mwp_cwp", "occupancy", "wfg"),
    "roofline_chart": ("instruction_roofline", "roofline"),
    "scatter_charts": ("benefits", "predicted_over_measured"),
}
FORMATS = (".svg", ".png")


def check_installed() -> None:
    """Raise UsageError, with installation advice, if Matplotlib is missing."""
    try:
        import_module("matplotlib")
    except ImportError:
        raise UsageError("figures need Matplotlib: pip install 'drywarp[plot]'") from None


def figure(answer: Any, name: str, **settings: Any) -> Drawing:
    """The figure called `name` of an analysis (see `OF_ANSWERS`). Raises UsageError for any other name."""
    check_name(name)
    drawn: Drawing = __getattr__(name)(answer, **settings)
    return drawn


def check_name(name: str) -> None:
    """Raise UsageError if the name is not a figure of an analysis."""
    if name not in OF_ANSWERS:
        raise UsageError(f"figure {name!r}: expected one of {', '.join(OF_ANSWERS)}")


def check_place(path: Path, option: str) -> None:
    """Raise UsageError if the file's suffix or folder is unusable, before any expensive work."""
    if path.suffix not in FORMATS:
        raise UsageError(f"{option} {path}: expected a file name that ends in {' or '.join(FORMATS)}")
    if path.is_dir() or not path.parent.is_dir():
        raise UsageError(f"{option} {path}: cannot be written (expected a file in an existing folder)")
    check_installed()


def write(drawn: Drawing, path: Path, option: str) -> None:
    """Write a figure in the format given by the file's suffix. Raises UsageError if that fails."""
    check_place(path, option)
    try:
        drawn.savefig(path)
    except OSError as error:
        raise UsageError(f"{option} {path}: cannot be written ({error.strerror})") from None


def __getattr__(name: str) -> Any:
    home = next((module for module, drawn in _HOMES.items() if name in drawn), None)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    check_installed()
    return getattr(import_module(f".{home}", __name__), name)


__all__ = [
    "FORMATS", "NEEDS_DETAIL", "NEEDS_EVENTS", "OF_ANSWERS", "OF_COMPARISONS", "THEMES", "Bar", "abstract_profile",
    "bars", "bars_of_kernels", "benefits", "benefits_of_kernels", "check_installed", "check_name", "check_place",
    "figure", "instruction_roofline", "lines", "models", "mwp_cwp", "occupancy", "overlap", "papers_figure",
    "predicted_over_measured", "profile", "roofline", "stalls", "study", "utilization", "wfg", "write",
]  # fmt: skip
