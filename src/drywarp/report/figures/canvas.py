"""The canvas of all figures: Matplotlib without pyplot, in drywarp's own style, with reproducible output.

All text is drawn literally (no mathtext, no TeX), since names come from the user's files.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import Any, cast

import matplotlib
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

from ...errors import UsageError
from ...support.text import plain
from .theme import Theme, theme_named

COLUMN_IN = 3.5
"""Default figure width in inches: one column of a two-column paper."""
FONT_PT, SMALL_PT = 8.0, 7.0
_NARROWEST_IN, _WIDEST_IN = 2.0, 40.0
_LONGEST_TITLE = 60
LETTER_IN = 0.068
"""Mean width in inches of a letter in a title."""
ROW_IN, HEAD_IN = 0.17, 0.62
"""Height in inches of a bar, and of everything above and below the bars."""
_DPI = 300
_OWN = {"figure.dpi": 100.0, "savefig.dpi": _DPI, "savefig.bbox": None, "savefig.transparent": False}


def _style(theme: Theme) -> dict[str, Any]:
    """Matplotlib's defaults overridden by ours, so that the user's style files have no effect."""
    kept = ("backend", "interactive", "toolbar", "webagg", "tk.", "docstring", "date.epoch")
    base = {key: value for key, value in matplotlib.rcParamsDefault.items() if not key.startswith(kept)}
    return base | {
        **_OWN,
        "text.usetex": False,
        "text.parse_math": False,
        "font.family": ["DejaVu Sans", "sans-serif"],
        "font.size": FONT_PT,
        "axes.titlesize": FONT_PT,
        "axes.titlelocation": "left",
        "axes.labelsize": FONT_PT,
        "xtick.labelsize": SMALL_PT,
        "ytick.labelsize": SMALL_PT,
        "legend.fontsize": SMALL_PT,
        "legend.frameon": False,
        "figure.facecolor": theme.background,
        "savefig.facecolor": theme.background,
        "axes.facecolor": theme.background,
        "axes.edgecolor": theme.soft,
        "axes.linewidth": 0.7,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.axisbelow": True,
        "axes.formatter.use_mathtext": False,
        "grid.color": theme.grid,
        "grid.linewidth": 0.6,
        "text.color": theme.text,
        "axes.labelcolor": theme.text,
        "xtick.color": theme.soft,
        "ytick.color": theme.soft,
        "xtick.labelcolor": theme.text,
        "ytick.labelcolor": theme.text,
        "lines.linewidth": 1.4,
        "svg.fonttype": "none",
        "svg.hashsalt": "drywarp",
    }


@contextmanager
def styled(theme: Theme) -> Iterator[None]:
    """Apply our style while drawing; restores the previous settings."""
    with warnings.catch_warnings(), matplotlib.rc_context(cast(Any, _style(theme))):
        warnings.filterwarnings("ignore", category=matplotlib.MatplotlibDeprecationWarning)
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # a name may be in any script
        yield


class Drawing(Figure):
    """A Matplotlib figure that is always rendered in its theme, and displays itself in notebooks."""

    theme: Theme

    def savefig(self, fname: Any, **settings: Any) -> None:
        """Like Matplotlib's, but vector files carry no date, so that the output is reproducible."""
        kind = str(settings.get("format") or getattr(fname, "name", fname)).lower()
        undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind.rpartition(".")[2])
        if undated:
            settings["metadata"] = undated | (settings.get("metadata") or {})
        with styled(self.theme):
            super().savefig(fname, **settings)

    def _repr_svg_(self) -> str:
        return svg_text(self)


@contextmanager
def drawing(theme: str, width: float, height: float) -> Iterator[Drawing]:
    """An empty figure of this size in inches. Raises UsageError for an invalid theme or width."""
    chosen = theme_named(theme)
    if not _NARROWEST_IN <= width <= _WIDEST_IN:
        raise UsageError(f"width {width:g} inches: expected {_NARROWEST_IN:g} to {_WIDEST_IN:g}")
    with styled(chosen):
        figure = Drawing(figsize=(width, height), layout="constrained")
        figure.theme = chosen
        figure.get_layout_engine().set(w_pad=0.03, h_pad=0.03)  # type: ignore[union-attr, call-arg]
        yield figure


def svg_text(figure: Figure) -> str:
    """The figure as SVG."""
    buffer = BytesIO()
    figure.savefig(buffer, format="svg")
    return buffer.getvalue().decode("utf-8")


def label(text: str, longest: int = _LONGEST_TITLE) -> str:
    """User text sanitised for display: visible characters, one line."""
    return plain(text, longest)


def title_of(kernel: str, gpu: str, width: float) -> str:
    """Kernel and GPU, truncated to fit a figure of this width in inches."""
    room = int((width - 0.5) / LETTER_IN)
    place = label(gpu, max(12, room - 15))
    return f"{label(kernel, max(10, room - len(place) - 4))} on {place}"


def columns(width: float, least: int = 3) -> int:
    """Legend columns for a figure of this width in inches."""
    return max(least, int(width / 1.3))


def behind(background: Any) -> dict[str, Any]:
    """The background box of text over lines: nearly opaque, so that both are legible."""
    return {"facecolor": background, "edgecolor": "none", "alpha": 0.8, "pad": 0.8}


# Axes: grid lines, and logarithmic axes with plain numbers.


def gridded(axes: Axes, which: str = "y") -> None:
    """Draw grid lines for one axis, and remove its redundant ticks."""
    axes.grid(True, axis=which)  # type: ignore[arg-type]
    axes.tick_params(axis=which, length=0)  # type: ignore[arg-type]


def decades(axis: Axis, text: Callable[[float], str] = lambda value: f"{value:g}", most: int = 7) -> None:
    """Ticks at powers of ten, plus 2 and 5 times them if there is room; no minor ticks."""
    low, high = sorted(axis.get_view_interval())
    axis.set_major_locator(FixedLocator(ticks(low, high, most)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: text(value)))
    axis.set_minor_locator(NullLocator())
    axis.set_minor_formatter(NullFormatter())


def tick_time(seconds: float) -> str:
    """A round time with its unit, without superfluous digits."""
    scale, unit = next(
        ((s, u) for s, u in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")) if seconds >= 0.9995 * s), (1e-9, "ns")
    )
    return f"{seconds / scale:.3g} {unit}"


def tick_rate(value: float) -> str:
    """A rate with the prefix of its unit, such as ``19.5 T``."""
    known = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
    scale, prefix = next((pair for pair in known if value >= pair[0]), (1.0, ""))
    return f"{value / scale:.3g} {prefix}"


def ticks(low: float, high: float, most: int = 7) -> list[float]:
    """1, 2 and 5 times powers of ten between two numbers; if too many, powers of ten or every n-th of them."""
    exponents = range(-30, 31)
    for steps in ((1, 2, 5), (1, 3), (1,)):
        found = [value for e in exponents for s in steps if low <= (value := float(f"{s}e{e}")) <= high]
        if len(found) <= most:
            return found
    every = -(-len(found) // most)
    return [value for value in found if round(_exponent(value)) % every == 0]


def _exponent(value: float) -> int:
    return int(f"{value:e}".partition("e")[2])
