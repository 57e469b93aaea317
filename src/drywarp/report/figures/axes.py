"""Axes of figures: grid lines, and logarithmic axes with plain numbers."""

from __future__ import annotations

from collections.abc import Callable

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator


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
