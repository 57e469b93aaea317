"""Which constants are uncertain, by how much, and a GPU with some of them scaled."""

from __future__ import annotations

from dataclasses import replace

import pytest

from drywarp.analysis.uncertainty.constants import scaled, weak_groups
from drywarp.analysis.uncertainty.uncertainty import WEAK, Entry, sort_of, uncertainty
from drywarp.hardware import Gpu, gpu_names, load_gpu
from drywarp.models.base import Prediction

PRODUCTS = [name for name in gpu_names() if "/" not in name]
KNOWN = uncertainty()


def of_kind(gpu: Gpu, kind: str) -> Gpu:
    """The GPU as if every number were of this kind."""
    return replace(gpu, known={key: replace(fact, kind=kind) for key, fact in gpu.facts()})  # type: ignore[arg-type]


def busy(gpu: Gpu) -> Prediction:
    """A prediction in which everything matters."""
    return Prediction("pipeline", 1.0, 1.0, "latency", (), utilization=dict.fromkeys(gpu.subsystems, 1.0))


def test_every_factor_has_a_reason_and_what_has_no_source_is_the_less_certain() -> None:
    for sort in KNOWN.proxy.__struct_fields__:
        proxy, assumed = getattr(KNOWN.proxy, sort), getattr(KNOWN.assumed, sort)
        assert isinstance(proxy, Entry)
        assert proxy.source
        assert proxy.note
        assert 1 < proxy.value <= assumed.value
    assert 0.5 < KNOWN.level < 1
    assert KNOWN.model.asynchronous.value > KNOWN.model.rest.value > KNOWN.model.stream.value > 1


@pytest.mark.parametrize("name", PRODUCTS)
def test_firm_constants_are_certain_and_weak_ones_that_cost_time_are_not(name: str) -> None:
    gpu = load_gpu(name)
    for key, fact in gpu.facts():
        log = KNOWN.of(key, fact)
        assert (log > 0) == (fact.kind in WEAK and sort_of(key) is not None)
        assert KNOWN.of(key, replace(fact, kind="measured")) == 0
    assert weak_groups(of_kind(gpu, "measured"), busy(gpu), list(gpu.classes), KNOWN) == []


@pytest.mark.parametrize("name", PRODUCTS)
def test_groups_share_no_constant_and_weaker_kinds_never_lose_one(name: str) -> None:
    gpu = load_gpu(name)
    groups = weak_groups(gpu, busy(gpu), list(gpu.classes), KNOWN)
    keys = [key for group in groups for key in group.logs]
    assert len(keys) == len(set(keys))
    weaker = {
        key: log
        for group in weak_groups(of_kind(gpu, "assumed"), busy(gpu), list(gpu.classes), KNOWN)
        for key, log in group.logs.items()
    }
    for group in groups:
        for key, log in group.logs.items():
            assert weaker[key] >= log


def test_what_is_hardly_used_is_left_out() -> None:
    gpu = load_gpu("a4000")
    idle = replace(busy(gpu), utilization=dict.fromkeys(gpu.subsystems, 0.1), stalls={"selected": 1.0})
    assert weak_groups(gpu, idle, list(gpu.classes), KNOWN) == []
    waiting = replace(idle, stalls={"selected": 1.0, "long_scoreboard": 1.0})
    assert [group.name for group in weak_groups(gpu, waiting, list(gpu.classes), KNOWN)] == ["memory latency"]


@pytest.mark.parametrize("name", ["a4000", "h100", "mi300x"])
def test_a_scaled_gpu_differs_in_that_constant_alone(name: str) -> None:
    gpu = load_gpu(name)
    for group in weak_groups(gpu, busy(gpu), list(gpu.classes), KNOWN):
        other = scaled(gpu, dict.fromkeys(group.logs, 2.0))
        for key in group.logs:
            first, *middle, last = key.split(".")
            if first == "classes":
                field = "lambda_" if last == "lambda" else last
                now, before = getattr(other.classes[middle[0]], field), getattr(gpu.classes[middle[0]], field)
            else:
                now, before = other.sections[first], gpu.sections[first]
                for step in [*middle, last]:
                    now, before = getattr(now, step), getattr(before, step)
            assert now == 2 * before
    assert scaled(gpu, {}) == gpu


def test_a_maximum_clock_below_the_boost_clock_is_refused(tmp_path: object) -> None:
    from pathlib import Path

    from drywarp.errors import InputFileError

    path = Path(str(tmp_path)) / "mine.toml"
    path.write_text(
        'format = 1\ntitle = "t"\ninherits = "a100"\n[sources]\nours = "o"\n[device]\n'
        'max_clock_mhz = { value = 1000, source = "ours", kind = "measured" }\n'
    )
    boost = load_gpu("a100").device.boost_clock_mhz
    assert boost > 1000
    with pytest.raises(InputFileError, match=rf"max_clock_mhz.*at least boost_clock_mhz = {boost:g}"):
        load_gpu(str(path))
