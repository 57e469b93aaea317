"""`__nanosleep` takes the time that it is asked to."""

from __future__ import annotations

import pytest

import drywarp
from tests.effort import some

KERNEL = """extern "C" __global__ void f(int* x, int n) { SLEEP; x[threadIdx.x] = 1; }"""


def answer(sleep: str) -> drywarp.Analysis:
    source = KERNEL.replace("SLEEP", sleep)
    return drywarp.analyze(source, gpu="a100", grid=1, block=32, args={"x": "i32[32]", "n": 4000})


def seconds(sleep: str) -> float:
    return answer(sleep).time_s - answer("").time_s


@pytest.mark.parametrize(
    ("sleep", "asked"),
    some(
        [
            ("__nanosleep(0)", 0),
            ("__nanosleep(2000)", 2e-6),
            ("__nanosleep(n)", 4e-6),
            ("for (int i = 0; i < 3; ++i) __nanosleep(1000)", 3e-6),
            ("__nanosleep(1000); __nanosleep(n)", 5e-6),
        ],
        2,
    ),
)
def test_it_takes_the_time_that_it_is_asked_to(sleep: str, asked: float) -> None:
    assert seconds(sleep) == pytest.approx(asked, abs=5e-8)
    assert not any("__nanosleep" in note for note in answer(sleep).notes)


def test_what_depends_on_data_is_said() -> None:
    found = answer("__nanosleep(x[threadIdx.x])")
    assert "the duration of __nanosleep depends on data: assumed to be zero" in found.notes
