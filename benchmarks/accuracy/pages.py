"""docs/accuracy/: a page for each set of rows with its plot, and the overview of all."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
from docs.site.pictures.svg import HUES, Drawing

from drywarp.experiments.validate.statistics import bias, mape, median_ratio, quantile_error, spearman, top_k_regret
from drywarp.models import model_names

from . import targets
from .budget import budget
from .rows import PRIMARY, Row, Set, read, sets

FACTORS = (1.1, 1.25, 1.5, 2.0)
OFF = 2.0
"""A row that is off by more than this factor is an outlier, and listed with its explanation."""
GENERATED = "<!-- Written by `python -m benchmarks.accuracy pages` from benchmarks/accuracy/rows; do not edit. -->\n"


def pages() -> Iterator[tuple[str, str]]:
    """Names of files in docs/accuracy and their content, the overview first."""
    every = [(one, read(one.name)) for one in sets()]
    yield "index.md", _overview(every)
    yield "targets.md", GENERATED + "\n" + targets.page({one.name: rows for one, rows in every})
    for one, rows in every:
        yield f"{one.name}.md", _page(one, rows)
        yield f"{one.name}.svg", str(plot(one, rows))


def parts(one: Set, rows: Sequence[Row]) -> dict[str, list[Row]]:
    """The halves of a set that was used in halves, else all of it under its own name."""
    if not one.halves:
        return {"": list(rows)}
    return {half: [row for row in rows if row.half == half] for half in ("odd", "even")}


def _overview(every: Sequence[tuple[Set, list[Row]]]) -> str:
    lines = [
        GENERATED,
        "# Accuracy, set by set\n",
        "How far predictions are from published measurements, over all rows of each set: no row is left out. The clock"
        " is the one at which each set was, or may have been, measured; rows were predicted by the commands on the"
        " sets' pages. MAPE is the mean of the absolute relative errors, *median* and *90 %* are quantiles of the same;"
        " *r* is Pearson's correlation of the logarithms of the times, *ρ* Spearman's. *Regret* is how much slower than"
        " the measured best the best of the five predicted fastest is. *Band* is the share of rows within the 90 %"
        " interval at that clock, and its median width. The last two columns are the baseline that any model has to"
        " beat: the roofline, with exact counts. [Targets](targets.md): what was aimed at, and why some of it is not"
        " reached.\n",
    ]
    for title, used in (
        ("Blind: no part in building drywarp", False),
        ("Used in building drywarp", True),
    ):
        lines += [f"## {title}\n", _HEAD, "|---" * 12 + "|"]
        for one, rows in every:
            for half, some in parts(one, rows).items():
                if (bool(one.used) and half != "even") == used:
                    lines.append(_overall(one, half, some))
        lines.append("")
    lines += ["## How sets were used\n"]
    lines += [f"- [{one.title}]({one.name}.md): {one.used or 'not at all'}" for one, _ in every]
    return "\n".join(lines) + "\n"


_HEAD = "| set | rows | MAPE | median | 90 % | bias | r | ρ | regret | band | roofline's MAPE | its ρ |"


def _overall(one: Set, half: str, rows: Sequence[Row]) -> str:
    name = f"[{one.title}]({one.name}.md)" + (f", {half} positions" if half else "") + f", {one.gpu}, {one.clock}"
    roofline = [row for row in rows if 0 < row.times.get("roofline", 0) < math.inf]
    other = _figures(roofline, "roofline") if roofline else ["–"] * 7
    return f"| {name} | {len(rows)} | {' | '.join(_figures(rows, PRIMARY))} | {_band(rows)} | {other[0]} | {other[5]} |"


def _figures(rows: Sequence[Row], model: str) -> list[str]:
    """MAPE, median, 90 %, bias, Pearson of the logarithms, Spearman, regret of the five predicted fastest."""
    p, m = [row.times[model] for row in rows], [row.measured for row in rows]
    errors = [f"{100 * value:.1f} %" for value in (mape(p, m), quantile_error(p, m, 0.5), quantile_error(p, m, 0.9))]
    orders = ["–" if value is None else f"{value:.3f}" for value in (pearson(p, m), spearman(p, m))]
    return [*errors, f"{100 * bias(p, m):+.1f} %", *orders, f"{100 * top_k_regret(p, m, 5):.1f} %"]


def pearson(predicted: Sequence[float], measured: Sequence[float]) -> float | None:
    """Of the logarithms; None if one side does not vary, or with fewer than three rows."""
    p, m = np.log(predicted), np.log(measured)
    return float(np.corrcoef(p, m)[0, 1]) if len(p) > 2 and np.ptp(p) > 0 and np.ptp(m) > 0 else None


def _band(rows: Sequence[Row]) -> str:
    ends = [(row.measured, row.band) for row in rows if row.band]
    if not ends:
        return "–"
    held = sum(low <= measured <= high for measured, (low, high) in ends) / len(ends)
    return f"{held:.0%}, {np.median([high / low for _, (low, high) in ends]):.2f}"


def _page(one: Set, rows: Sequence[Row]) -> str:
    lines = [GENERATED, f"# {one.title}, {one.gpu}\n", f"{one.about}\n", f"- Measurements: {one.source}"]
    lines += [f"- Clock: {one.clock}", f"- Used in building drywarp: {one.used or 'no'}", f"- Rows: {len(rows)}\n"]
    lines += ["    " + line for line in one.command.strip().splitlines()]
    lines += ["", f"![Predicted against measured times]({one.name}.svg)\n"]
    for half, some in parts(one, rows).items():
        lines += [f"## Models{_of(half)}\n", *_models(some), ""]
        lines += [f"## What limits{_of(half)}\n", *_limiters(some), ""]
        lines += [f"## Error budget{_of(half)}\n", *budget(some), ""]
    lines += [f"## Off by more than {OFF:g} times\n", *_outliers(one, rows), "", "## Rows\n", *_rows(rows)]
    return "\n".join(lines) + "\n"


def _of(half: str) -> str:
    return f", {half} positions" if half else ""


def _models(rows: Sequence[Row]) -> Iterator[str]:
    factors = ", ".join(map(str, FACTORS))
    yield f"| model | rows | MAPE | median | 90 % | bias | r | ρ | regret | within {factors} times |"
    yield "|---" * 10 + "|"
    for name in sorted(model_names(), key=lambda name: name != PRIMARY):
        if some := [row for row in rows if 0 < row.times.get(name, 0) < math.inf]:
            off = [abs(math.log(row.times[name] / row.measured)) for row in some]
            within = ", ".join(f"{sum(o <= math.log(factor) for o in off) / len(off):.0%}" for factor in FACTORS)
            yield f"| {name} | {len(some)} | {' | '.join(_figures(some, name))} | {within} |"


def _limiters(rows: Sequence[Row]) -> Iterator[str]:
    by: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by[row.limiter].append(row)
    yield "| limiter | rows | MAPE | median ratio |"
    yield "|---" * 4 + "|"
    for name, some in sorted(by.items(), key=lambda item: -len(item[1])):
        p, m = [row.times[PRIMARY] for row in some], [row.measured for row in some]
        yield f"| {name} | {len(some)} | {mape(p, m):.1%} | {median_ratio(p, m):.3f} |"


def _outliers(one: Set, rows: Sequence[Row]) -> Iterator[str]:
    off = [row for row in rows if abs(math.log(row.ratio)) > math.log(OFF)]
    if not off:
        yield "None."
        return
    yield "| row | predicted over measured | the answer says so | why |"
    yield "|---" * 4 + "|"
    for row in sorted(off, key=lambda row: row.ratio):
        why = next((text for key, text in one.outliers.items() if key in row.name), "not explained")
        yield f"| {_cell(row.name)} | {row.ratio:.2f} | {'yes' if row.doubtful else 'no'} | {why} |"


def _rows(rows: Sequence[Row]) -> Iterator[str]:
    dram = any(row.dram_ratio is not None for row in rows)
    yield "| row | measured | predicted | error | band | limiter |" + (" DRAM bytes | operations |" if dram else "")
    yield "|---" * (8 if dram else 6) + "|"
    for row in rows:
        band = f"{_time(row.band[0])} to {_time(row.band[1])}" if row.band else "–"
        said = " (in doubt)" if row.doubtful else ""
        counts = (row.dram_ratio, row.operations_ratio) if dram else ()
        cells = [_cell(row.name), _time(row.measured), _time(row.times[PRIMARY]), f"{row.ratio - 1:+.1%}", band]
        cells += [row.limiter + said, *("–" if value is None else f"× {value:.2f}" for value in counts)]
        yield "| " + " | ".join(cells) + " |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def _time(micros: float) -> str:
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if micros >= size:
            return f"{micros / size:.3g} {unit}"
    return f"{micros:.3g} µs"


_SIDE, _LEFT, _TOP = 460.0, 62.0, 12.0


def plot(one: Set, rows: Sequence[Row]) -> Drawing:
    """Predicted over measured, both logarithmic, a point a row in its limiter's colour; lines at 1 and 1.25 times."""
    limiters = [name for name, _ in Counter(row.limiter for row in rows).most_common()]
    drawing = Drawing(_LEFT + _SIDE + 150, _TOP + _SIDE + 46, f"{one.title} on {one.gpu}: predicted against measured")
    times = [time for row in rows for time in (row.measured, row.times[PRIMARY])]
    low, high = math.log10(min(times)) - 0.08, math.log10(max(times)) + 0.08

    def at(measured: float, predicted: float) -> tuple[float, float]:
        x, y = ((math.log10(value) - low) / (high - low) * _SIDE for value in (measured, predicted))
        return _LEFT + x, _TOP + _SIDE - y

    for power in range(math.ceil(low), math.floor(high) + 1):
        for line in (((10**power, 10**low), (10**power, 10**high)), ((10**low, 10**power), (10**high, 10**power))):
            drawing.line([at(*end) for end in line], "grid")
        x, y = at(10**power, 10**power)
        drawing.text(x, _TOP + _SIDE + 18, _time(10**power), "middle", "small")
        drawing.text(_LEFT - 6, y + 4, _time(10**power), "end", "small")
    for factor, classes in ((1.0, "line"), (1.25, "grid"), (0.8, "grid")):
        span = math.log10(factor)
        ends = (10 ** max(low, low - span), 10 ** min(high, high - span))
        drawing.line([at(end, end * factor) for end in ends], classes)
    for row in rows:
        x, y = at(row.measured, row.times[PRIMARY])
        hue = limiters.index(row.limiter) % len(HUES)
        hint = f"{row.name}: {_time(row.measured)} measured, {_time(row.times[PRIMARY])} predicted"
        drawing.rectangle(x - 2.5, y - 2.5, 5, 5, f"h{hue}", hint)
    for number, name in enumerate(limiters):
        drawing.rectangle(_LEFT + _SIDE + 14, _TOP + 18 * number, 9, 9, f"h{number % len(HUES)}")
        count = sum(row.limiter == name for row in rows)
        drawing.text(_LEFT + _SIDE + 28, _TOP + 9 + 18 * number, f"{name} ({count})", classes="small")
    drawing.text(_LEFT + _SIDE / 2, _TOP + _SIDE + 38, "measured", "middle")
    drawing.text(_LEFT, _TOP - 1, "predicted", "end", "small")
    return drawing
