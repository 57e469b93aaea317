"""A figure to draw on: Matplotlib's, without pyplot, in a style of its own whatever the user's is, the same each time.

All text is taken as it stands (no mathematics between dollar signs, no TeX): names come from the user's files.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import Any, cast

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..errors import UsageError
from ..plain_text import plain
from .theme import Theme, theme_named

COLUMN_IN = 3.5
"""Width in inches of a figure unless told: a column of a paper with two."""
FONT_PT, SMALL_PT = 8.0, 7.0
_NARROWEST_IN, _WIDEST_IN = 2.0, 40.0
_LONGEST_TITLE = 60
LETTER_IN = 0.068
"""What a letter of a title takes in the mean."""
_DPI = 300
_OWN = {"figure.dpi": 100.0, "savefig.dpi": _DPI, "savefig.bbox": None, "savefig.transparent": False}


def _style(theme: Theme) -> dict[str, Any]:
    """Matplotlib's defaults with ours over them, so that no style file of the user has a part in it."""
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
    """Our style for as long as something is drawn; what was set before comes back."""
    with warnings.catch_warnings(), matplotlib.rc_context(cast(Any, _style(theme))):
        warnings.filterwarnings("ignore", category=matplotlib.MatplotlibDeprecationWarning)
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # a name may be in any script
        yield


class Drawing(Figure):
    """A Matplotlib figure that is drawn in its theme whenever it is written, and shows itself in notebooks."""

    theme: Theme

    def savefig(self, fname: Any, **settings: Any) -> None:
        """As Matplotlib's; a vector file says nothing of when it was made, so that it is the same each time."""
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
    """An empty figure of so many inches in which to draw. Raises UsageError for a theme or width that is none."""
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
    """Text of a user, made fit to be shown: visible characters, one line."""
    return plain(text, longest)


def title_of(kernel: str, gpu: str, width: float) -> str:
    """What runs where, cut so that it fits into a figure so many inches wide: the kernel's name first."""
    room = int((width - 0.5) / LETTER_IN)
    place = label(gpu, max(12, room - 15))
    return f"{label(kernel, max(10, room - len(place) - 4))} on {place}"


def gridded(axes: Axes, which: str = "y") -> None:
    """Thin lines behind the data along one axis, and no ticks that they make needless."""
    axes.grid(True, axis=which)  # type: ignore[arg-type]
    axes.tick_params(axis=which, length=0)  # type: ignore[arg-type]


def columns(width: float, least: int = 3) -> int:
    """Columns of a key in a figure so many inches wide."""
    return max(least, int(width / 1.3))


def behind(background: Any) -> dict[str, Any]:
    """The box of a text that stands over lines: nearly opaque, so that both can be made out."""
    return {"facecolor": background, "edgecolor": "none", "alpha": 0.8, "pad": 0.8}
