"""A drawing in SVG: shapes in order, colours as classes so that a page's dark scheme reaches them."""

from __future__ import annotations

from html import escape

HUES = ("#3b6fb6", "#d1662f", "#2e8b6f", "#9b5ba5", "#b08a1e", "#4c7d8c", "#c04f76", "#6b6f76")
"""One for each class `h0` to `h7`; the pages' dark scheme has lighter ones."""
_STYLE = (
    "svg.dw{color:#24292f}"
    "@media(prefers-color-scheme:dark){svg.dw{color:#dfe3e8}}"
    ".dw text{fill:currentColor;font:13px system-ui,sans-serif}"
    ".dw .small{font-size:11px}.dw .line{stroke:currentColor;fill:none}"
    ".dw .grid{stroke:currentColor;opacity:.18}.dw .pale{opacity:.35}"
    + "".join(f".dw .h{n}{{fill:{hue}}}.dw .s{n}{{stroke:{hue};fill:none}}" for n, hue in enumerate(HUES))
)


class Drawing:
    """`width` and `height` in pixels; `title` is what a reader hears who does not see it."""

    def __init__(self, width: float, height: float, title: str) -> None:
        self.width, self.height, self.title = width, height, title
        self.parts: list[str] = []

    def rectangle(self, x: float, y: float, width: float, height: float, classes: str, hint: str = "") -> None:
        """A box; `hint` is shown where a pointer rests on it."""
        inside = f"<title>{escape(hint)}</title>" if hint else ""
        place = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
        self.parts.append(f'<rect {place} rx="2" class="{classes}">{inside}</rect>')

    def line(self, points: list[tuple[float, float]], classes: str = "line", width: float = 1.0, end: str = "") -> None:
        """A line through points; `end` is `arrow` for one with a head."""
        through = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.parts.append(f'<polyline points="{through}" class="{classes}" stroke-width="{width:g}" fill="none"/>')
        if end:
            (x, y), (from_x, from_y) = points[-1], points[-2]
            across = abs(x - from_x) >= abs(y - from_y)
            sign = 1 if (x - from_x if across else y - from_y) > 0 else -1
            head = f"l{-7 * sign} -4v8z" if across else f"l-4 {-7 * sign}h8z"
            self.parts.append(f'<path d="M{x:.1f} {y:.1f}{head}" fill="currentColor"/>')

    def text(self, x: float, y: float, text: str, anchor: str = "start", classes: str = "") -> None:
        """A line of text at its baseline."""
        kind = f' class="{classes}"' if classes else ""
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{kind}>{escape(text)}</text>')

    def __str__(self) -> str:
        head = (
            f'<svg class="dw" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width:g} {self.height:g}" '
            f'width="{self.width:g}" role="img"><title>{escape(self.title)}</title><style>{_STYLE}</style>'
        )
        return "\n".join([head, *self.parts, "</svg>"]) + "\n"
