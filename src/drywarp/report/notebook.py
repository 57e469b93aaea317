"""A result in a notebook: a compact view without scripts, and its tables as data frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from ..errors import UsageError
from ..support.text import bytes_text, count_text, percent_text, range_text, time_text

_ROWS = 6


def summary_html(answer: Mapping[str, Any], sentence: str) -> str:
    """A notebook view of a result's JSON object, with the verdict as a sentence. All text is escaped."""
    prediction, occupancy, memory = answer["prediction"], answer["occupancy"], answer["memory"]
    launch = answer["launch"]
    grid, block = (" × ".join(map(str, launch[name])) for name in ("grid", "block"))
    band = answer.get("band")
    within = ""
    if band:
        low, high = (time_text(band["at_clock"][name]) for name in ("low_s", "high_s"))
        within = f" ({band['level']:.0%} interval {range_text(low, high)})"
    facts = [
        ("Occupancy", f"{occupancy['warps_per_sm']} warps per SM ({occupancy['fraction']:.0%}), limited by "
         f"{occupancy['limited_by'].replace('_', ' ')}"),
        ("Clock", f"{answer['assumptions']['clock_hz'] / 1e6:.0f} MHz, {answer['assumptions']['l2']} L2"),
        ("Memory", f"{bytes_text(memory['dram_bytes'])} DRAM; hit rates L1 {percent_text(memory['l1_hit_rate'])}, "
         f"L2 {percent_text(memory['l2_hit_rate'])}"),
        ("Work", f"{count_text(answer['instructions']['warp_instructions'])} warp instructions, "
         f"{launch['waves']:.2f} waves"),
        *((f"{finding['gain']:.2f}×", f"{finding['rule']}: {finding['remedy']}")
          for finding in answer.get("findings", [])[:3]),
    ]  # fmt: skip
    shares = sorted(prediction["utilization"].items(), key=lambda item: -item[1])[:_ROWS]
    total = sum(answer["stalls"].values())
    stalls = sorted(((name, cycles / total) for name, cycles in answer["stalls"].items()), key=lambda item: -item[1])
    return (
        f"<div><div><b>{escape(answer['kernel'])}</b> on {escape(answer['gpu_title'])}, "
        f"grid {grid}, block {block}</div>"
        f'<div style="font-size:1.6em;font-weight:600">{time_text(prediction["time_s"])}'
        f'<span style="font-size:0.6em;font-weight:400">{escape(within)}</span></div>'
        f"<div>{escape(sentence)}</div>"
        f"<table>{''.join(_fact(*fact) for fact in facts)}</table>"
        f'<div style="display:flex;gap:2em;flex-wrap:wrap">{_bars("Utilization", shares)}'
        f"{_bars('Warp time', stalls[:_ROWS]) if total else ''}</div></div>"
    )


def _fact(name: str, value: str) -> str:
    return f'<tr><th style="text-align:left">{escape(name)}</th><td style="text-align:left">{escape(value)}</td></tr>'


def _bars(title: str, shares: list[tuple[str, float]]) -> str:
    rows = "".join(
        f'<tr><td style="text-align:left">{escape(name)}</td><td style="text-align:right">{share:.1%}</td>'
        f'<td style="width:8em"><div style="height:0.7em;width:{100 * min(1.0, share):.1f}%;background:#0072b2"></div>'
        "</td></tr>"
        for name, share in shares
    )
    return f'<table><caption style="text-align:left">{escape(title)}</caption>{rows}</table>'


def frame(answer: Mapping[str, Any], table: str) -> Any:
    """One table of a result's JSON object as a pandas DataFrame.

    `lines`: source lines, costliest first. `curve`: a row per model and occupancy. `stalls`: warp-cycles by reason.
    `utilization`: fraction of the time that each part is busy, and the cycles if it were the only limit. `models`:
    every model's time. Raises UsageError for any other name, or if pandas is not installed.
    """
    return frame_of(_rows(answer, table))


def frame_of(rows: Sequence[Mapping[str, Any]]) -> Any:
    """Rows as a pandas DataFrame. Raises UsageError if pandas is not installed."""
    try:
        import pandas
    except ImportError:
        raise UsageError("to_pandas needs pandas: pip install 'drywarp[pandas]'") from None
    return pandas.DataFrame(rows)


def table_html(title: str, rows: Sequence[Mapping[str, str]]) -> str:
    """A notebook view of several results: a table whose columns are the keys of the rows. All text is escaped."""
    columns = list(rows[0]) if rows else []
    head = "".join(f'<th style="text-align:left">{escape(name)}</th>' for name in columns)
    body = ("".join(f'<td style="text-align:left">{escape(row[name])}</td>' for name in columns) for row in rows)
    lines = "".join(f"<tr>{cells}</tr>" for cells in body)
    return f'<table><caption style="text-align:left">{escape(title)}</caption><tr>{head}</tr>{lines}</table>'


def _rows(answer: Mapping[str, Any], table: str) -> list[dict[str, Any]]:
    if table == "lines":
        return list(answer["lines"])
    if table == "curve":
        return [{"model": model, **point} for model, points in answer["curve"].items() for point in points]
    if table == "stalls":
        total = sum(answer["stalls"].values())
        return [{"reason": name, "cycles": c, "share": c / total} for name, c in answer["stalls"].items() if total]
    if table == "utilization":
        alone = answer["prediction"]["cycles_if_only_limit"]
        use = answer["prediction"]["utilization"]
        return [{"part": name, "share": share, "cycles_if_only_limit": alone.get(name)} for name, share in use.items()]
    if table == "models":
        return [{"model": name, **found} for name, found in answer["models"].items()]
    raise UsageError(f"table {table!r}: expected lines, curve, stalls, utilization or models")
