"""Records are the standard module's data classes, except that their methods are compiled at the first call."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from drywarp.support import records

SHAPES: list[dict[str, bool]] = [
    {"frozen": frozen, "slots": slots, "eq": eq, "order": order, "kw_only": kw_only}
    for frozen, slots, eq, order, kw_only in itertools.product((False, True), repeat=5)
    if eq or not order
]


def made(by: Callable[..., Any], asked: dict[str, bool]) -> tuple[Any, Any]:
    """A class with every kind of field, and one derived from it."""

    @by(**asked)
    class Base:
        first: int
        second: str = "two"
        several: list[int] = dataclasses.field(default_factory=list, compare=False)
        hidden: int = dataclasses.field(default=7, repr=False, kw_only=True)
        later: int = dataclasses.field(init=False, default=3)

        def __post_init__(self) -> None:
            object.__setattr__(self, "later", self.first + 1)

    @by(**asked)
    class Derived(Base):
        """Adds a field."""

        third: float = 0.5

    return Base, Derived


def told(call: Callable[[], Any]) -> Any:
    """What a call returns, or which error it raises."""
    try:
        return call()
    except (TypeError, AttributeError) as error:  # FrozenInstanceError is one of the latter
        return type(error)


@pytest.mark.parametrize("asked", SHAPES, ids=str)
def test_a_record_behaves_as_a_standard_data_class(asked: dict[str, bool]) -> None:
    ours, standard = made(records.dataclass, asked), made(dataclasses.dataclass, asked)
    for record, like in zip(ours, standard, strict=True):
        fields = [[(f.name, f.type, f.default, f.init) for f in dataclasses.fields(c)] for c in (record, like)]
        assert fields[0] == fields[1]
        assert getattr(record, "__match_args__", None) == getattr(like, "__match_args__", None)
        assert hasattr(record(first=1), "__dict__") == hasattr(like(first=1), "__dict__")
        for given, named in (((), {"first": 1}), ((1, "x"), {}), ((), {}), ((1,), {"hidden": 2}), ((1,), {"other": 2})):
            one, other = (told(lambda c=c, g=given, n=named: c(*g, **n)) for c in (record, like))
            assert isinstance(one, type) == isinstance(other, type)
            if isinstance(one, type):
                assert one is other
                continue
            assert dataclasses.asdict(one) == dataclasses.asdict(other)
            assert repr(one) == repr(other)
            assert told(lambda o=one: hash(o)) is TypeError or hash(one) == hash(copy.copy(one)) or not asked["eq"]
            assert (told(lambda o=one: hash(o)) is TypeError) == (told(lambda o=other: hash(o)) is TypeError)


@pytest.mark.parametrize("asked", SHAPES, ids=str)
def test_comparisons_and_changes_of_records(asked: dict[str, bool]) -> None:
    answers = []
    for kind in (made(records.dataclass, asked), made(dataclasses.dataclass, asked)):
        (base, derived), found = kind, []
        less, same, more = base(first=1), base(first=1, several=[4]), base(first=2)
        found += [less == same, less == more, less != derived(first=1), less == derived(first=1)]
        found += [told(lambda a=less, b=more: a < b), told(lambda a=less, b=same: a >= b)]
        found += [told(lambda a=less: setattr(a, "first", 5)), told(lambda a=less: delattr(a, "second"))]
        changed = told(lambda a=more: dataclasses.replace(a, first=9))
        found += [dataclasses.asdict(changed), dataclasses.asdict(copy.deepcopy(derived(first=3, third=1.0)))]
        answers.append(found)
    assert answers[0] == answers[1]


@records.dataclass(frozen=True, slots=True)
class Kept:
    """At module level, so that it can be pickled."""

    number: int
    names: tuple[str, ...] = ()


def test_a_frozen_record_with_slots_is_pickled() -> None:
    one = Kept(3, ("a", "b"))
    assert pickle.loads(pickle.dumps(one)) == one
    assert {one: 1}[Kept(3, ("a", "b"))] == 1
