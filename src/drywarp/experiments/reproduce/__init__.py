"""Recomputes every number in the papers that follows from what the papers print, and compares the two.

Each row has a kind. `model`: a model or the simulation computed the number from the paper's inputs. `derived`: so it
did, but the paper prints only the equation or the cells from which the right answer follows. `input`: the number was
read back, or is a ratio, a sum or a unit conversion of printed ones, and says nothing about a model.

The tolerance is half a unit of the last printed digit, none for a number of one digit (a count, or exact), 2 % if the
paper says "about"; a row with another tolerance says why in its note. `inconsistent_in_source`: the paper's own
printed numbers contradict this one, and the note shows the arithmetic. `differs`: the number misses the printed one by
more than the tolerance without such a proof, and the note says what we believe the reason is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Literal, get_args

from ...support.folders import packaged_rows

Status = Literal["reproduced", "differs", "inconsistent_in_source", "failed"]
Kind = Literal["model", "derived", "input"]

STATUSES: tuple[Status, ...] = get_args(Status)
KINDS: tuple[Kind, ...] = get_args(Kind)

ABOUT = 0.02
"""Tolerance, as a fraction, of a number that the paper qualifies with "about"."""

ROUNDING = 1e-9
"""Slack for binary fractions, as a fraction of the published number."""


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


def tolerance_of(published: str, about: bool = False, rounded: bool = False) -> float:
    """Half a unit of the last digit of a number as printed, such as ``12.40`` or ``2.1E10``.

    A number of one digit is exact unless it is `rounded`; one that the paper qualifies with "about" has 2 %. Raises
    ValueError if it is not finite.
    """
    value = Decimal(published)
    sign_digits_exponent = value.as_tuple()
    if about:
        return abs(float(value)) * ABOUT
    exponent = sign_digits_exponent.exponent
    if not isinstance(exponent, int):
        raise ValueError(f"{published!r} is not a finite number")
    if len(sign_digits_exponent.digits) == 1 and not rounded:
        return 0.0
    return 0.5 * 10.0**exponent


def _agrees(published: float, computed: float, tolerance: float) -> bool:
    return abs(computed - published) <= tolerance + ROUNDING * max(abs(published), 1e-3)


def row(
    paper: str,
    place: str,
    quantity: str,
    published: str,
    computed: float,
    about: bool = False,
    note: str = "",
    *,
    kind: Kind = "model",
    rounded: bool = False,
    tolerance: float | None = None,
) -> Row:
    """A number that should follow from the printed inputs; `published` is the string that the paper prints.

    `rounded` says that a number of one digit is not exact. A `tolerance` other than the digits' needs a note. Raises
    ValueError without one.
    """
    if (rounded or tolerance is not None) and not note:
        raise ValueError(f"{paper}, {place}, {quantity}: a tolerance other than that of the digits needs a reason")
    allowed, value = tolerance_of(published, about, rounded) if tolerance is None else tolerance, float(published)
    status: Status = "reproduced" if _agrees(value, computed, allowed) else "failed"
    return Row(paper, place, quantity, value, computed, allowed, status, note, kind)


def derived(
    paper: str, place: str, quantity: str, expected: float, computed: float, note: str = "", tolerance: float = 0.0
) -> Row:
    """A number that the paper does not print: `expected` follows from its equation, `computed` is the model's.

    The tolerance is a fraction of what is expected.
    """
    allowed = tolerance * abs(expected)
    status: Status = "reproduced" if _agrees(expected, computed, allowed) else "failed"
    return Row(paper, place, quantity, expected, computed, allowed, status, note, "derived")


def inconsistent(
    paper: str,
    place: str,
    quantity: str,
    published: str,
    computed: float,
    note: str,
    about: bool = False,
    *,
    kind: Kind = "model",
) -> Row:
    """A number that other numbers of the paper contradict; `note` shows the arithmetic. ValueError if it agrees."""
    tolerance = tolerance_of(published, about)
    return _misfit(
        Row(paper, place, quantity, float(published), computed, tolerance, "inconsistent_in_source", note, kind)
    )


def differs(
    paper: str, place: str, quantity: str, published: str, computed: float, note: str, *, kind: Kind = "model"
) -> Row:
    """A number that we do not obtain, without proof that the paper errs; `note` is the reason that we believe.

    ValueError if it agrees.
    """
    tolerance = tolerance_of(published)
    return _misfit(Row(paper, place, quantity, float(published), computed, tolerance, "differs", note, kind))


def _misfit(made: Row) -> Row:
    what = f"{made.paper}, {made.place}, {made.quantity}"
    if _agrees(made.published, made.computed, made.tolerance):
        raise ValueError(f"{what}: {made.computed} agrees with the printed {made.published:g}")
    if not made.note:
        raise ValueError(f"{what}: what does not agree needs its arithmetic or a reason")
    return made


def of_kind(kind: Kind, rows: Iterable[Row]) -> list[Row]:
    """The same rows with another kind."""
    return [replace(each, kind=kind) for each in rows]


def reproduce() -> list[Row]:
    """Every published number with the computed one, sorted by paper: from the modules named ``rows_…`` here."""
    names = sorted(info.name for info in iter_modules(__path__) if info.name.startswith("rows_"))
    modules = [import_module(f".{name}", __name__) for name in names]
    return sorted((each for module in modules for each in module.rows()), key=lambda row: row.paper)


def left_out() -> list[LeftOut]:
    """The printed numbers that have no row, sorted by paper: in `left_out.csv`."""
    return [LeftOut(**line) for line in packaged_rows(Path(__file__).with_name("left_out.csv"))]


def totals(rows: Sequence[Row], kind: Kind | None = None) -> dict[str, int]:
    """How many rows have each status: of all kinds, or of one."""
    count = Counter[str](row.status for row in rows if kind in (None, row.kind))
    return {status: count[status] for status in STATUSES}
