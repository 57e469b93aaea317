"""Recomputes every number in the papers that follows from what the papers print, and compares the two.

Each row has a kind. `model`: a model or the simulation computed the number from the paper's inputs. `derived`: so it
did, but the paper prints only the equation or the cells from which the right answer follows. `input`: the number was
read back, or is a ratio, a sum or a unit conversion of printed ones, and says nothing about a model.

`printed.csv` holds what the papers print; the modules ``rows_…`` compute it. The tolerance is half a unit of the last
printed digit, none for a number of one digit (a count, or exact), 2 % if the paper says "about"; a row with another
tolerance says why in its note. `inconsistent_in_source`: the paper's own printed numbers contradict this one, and the
note shows the arithmetic. `differs`: the number misses the printed one by more than the tolerance without such a proof,
and the note says what we believe the reason is.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Literal, cast, get_args

from ...support.folders import packaged_rows

Status = Literal["reproduced", "differs", "inconsistent_in_source", "failed"]
Kind = Literal["model", "derived", "input"]

STATUSES: tuple[Status, ...] = get_args(Status)
KINDS: tuple[Kind, ...] = get_args(Kind)

ROUNDING = 1e-9
"""Slack for binary fractions, as a fraction of the published number."""
ABOUT = "2 %"
"""Tolerance of a number that the paper qualifies with "about"."""


@dataclass(frozen=True, slots=True)
class Row:
    """One number: its place, the printed value, and the computed one.

    For kind `derived`, `published` is what the paper's equation or cells give; the paper does not print it.
    """

    paper: str
    place: str
    quantity: str
    published: float
    computed: float
    tolerance: float
    status: Status
    note: str = ""
    kind: Kind = "model"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Printed numbers without a row, and why."""

    paper: str
    what: str
    why: str


@dataclass(frozen=True, slots=True)
class Value:
    """A computed number, what the paper's equation gives where it prints no number, and what the note shows."""

    computed: float
    expected: float = math.nan
    shown: Mapping[str, float] = field(default_factory=dict)


Values = dict[str, float | Value]
"""What a paper's inputs give, by quantity; by place and quantity, ``§2: quantity``, where several places have it."""


def together(*parts: Callable[[], Values]) -> Values:
    """All that several functions give."""
    return {quantity: value for part in parts for quantity, value in part().items()}


def tolerance_of(printed: str) -> float:
    """Half a unit of the last digit of a number as printed, such as ``12.40`` or ``2.1E10``; none if it has one digit.

    Raises ValueError if it is not finite.
    """
    sign_digits_exponent = Decimal(printed).as_tuple()
    if not isinstance(sign_digits_exponent.exponent, int):
        raise ValueError(f"{printed!r} is not a finite number")
    return 0.0 if len(sign_digits_exponent.digits) == 1 else 0.5 * 10.0**sign_digits_exponent.exponent


def row_of(line: Mapping[str, str], value: float | Value) -> Row:
    """A line of `printed.csv` with the computed number.

    Raises ValueError if a tolerance of its own has no reason, or if what is said to differ agrees.
    """
    if not isinstance(value, Value):
        value = Value(value)
    printed, own = line["printed"], line["tolerance"]
    published = float(printed) if printed else value.expected
    if own.endswith("%"):
        tolerance = abs(published) * (float(own.removesuffix("%")) / 100)
    else:
        tolerance = float(own) if own else tolerance_of(printed) if printed else 0.0
    what, note = f"{line['paper']}, {line['place']}, {line['quantity']}", line["note"]
    agrees = abs(value.computed - published) <= tolerance + ROUNDING * max(abs(published), 1e-3)
    usual = own in ("", ABOUT) or (not printed and own.endswith("%"))
    if not note and (line["status"] or not usual):
        raise ValueError(f"{what}: a tolerance other than that of the digits, or a misfit, needs a reason")
    if line["status"] and agrees:
        raise ValueError(f"{what}: {value.computed} agrees with the printed {published:g}")
    return Row(
        *(line["paper"], line["place"], line["quantity"], published, value.computed, tolerance),
        status=cast(Status, line["status"] or ("reproduced" if agrees else "failed")),
        note=note.format(computed=value.computed, **value.shown),
        kind=cast(Kind, line["kind"] or "model"),
    )


def reproduce() -> list[Row]:
    """Every published number with the computed one, in the order of `printed.csv`, from the modules ``rows_…`` here.

    Raises ValueError if a number is computed that is not in that file, or the reverse.
    """
    names = sorted(info.name for info in iter_modules(__path__) if info.name.startswith("rows_"))
    modules = [import_module(f".{name}", __name__) for name in names]
    values = {
        (paper, quantity): value
        for module in modules
        for paper, found in module.computed().items()
        for quantity, value in found.items()
    }
    rows = []
    for line in packaged_rows(Path(__file__).with_name("printed.csv")):
        keys = [(line["paper"], key) for key in (line["quantity"], f"{line['place']}: {line['quantity']}")]
        key = next((key for key in keys if key in values), None)
        if key is None:
            raise ValueError(f"{', '.join(keys[1])}: nothing computes it")
        rows.append(row_of(line, values.pop(key)))
    if values:
        raise ValueError(f"printed.csv lacks {[*values]}")
    return rows


def left_out() -> list[LeftOut]:
    """The printed numbers that have no row, sorted by paper: in `left_out.csv`."""
    return [LeftOut(**line) for line in packaged_rows(Path(__file__).with_name("left_out.csv"))]


def totals(rows: Sequence[Row], kind: Kind | None = None) -> dict[str, int]:
    """How many rows have each status: of all kinds, or of one."""
    count = Counter[str](row.status for row in rows if kind in (None, row.kind))
    return {status: count[status] for status in STATUSES}
