"""Past the limits of emulation there is an answer wherever one can be given, and it says what it rests on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import drywarp
from drywarp.analysis.prepare import prepare_kernel
from drywarp.analysis.prepared import Prepared
from drywarp.analysis.uncertainty.uncertainty import uncertainty
from drywarp.errors import EmulationLimitError
from drywarp.execution.emulator import Limits
from drywarp.execution.emulator.run import emulate
from drywarp.execution.emulator.sampling import fewest
from drywarp.kernel.profile import Profile
from tests.cli.command import complaint, run

WALK = """
// drywarp: --grid 64 --block 128 --arg n=i32[8192]:ones --arg out=i32[8192]
__global__ void walk(const int* n, int* out) {
  int at = blockIdx.x * blockDim.x + threadIdx.x, steps = 0;
  while (at < 60000) { at += n[at & 8191]; steps += at & 3; }
  out[blockIdx.x * blockDim.x + threadIdx.x] = steps;
}
"""
SHORTER_WALK = WALK.replace("60000", "15000")
HEAVY = """
// drywarp: --grid 64 --block 128 --arg out=i32[8192]
__global__ void heavy(int* out) {
  int sum = 0;
  for (int i = 0; i < (blockIdx.x > 48 ? 4000 : 40); ++i) sum = sum * 3 + (sum ^ i);
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
"""
LANES = Limits(1_000_000)
"""Less than a block of `WALK` takes; more than the light blocks of `HEAVY` take, less than its heavy ones."""


def profile_of(prepared: Prepared, limits: Limits) -> Profile:
    return emulate(prepared.kernel, prepared.launch, limits=limits).profile


@pytest.fixture(scope="module")
def heavy() -> Prepared:
    return prepare_kernel(HEAVY)


def test_where_no_block_ends_the_code_is_followed_with_the_iterations_that_were_seen(own_results: Path) -> None:
    answer, whole = drywarp.analyze(SHORTER_WALK, limits=LANES), drywarp.analyze(SHORTER_WALK)
    assert answer.static is not None
    (loop,) = (loop for loop in answer.static.loops if loop.known == "assumed")
    assert loop.trips is not None
    assert 16 < loop.trips < 15_000
    doubt = answer.doubts[0]
    assert doubt.startswith("no block finished within 1,000,000 lane steps (--lane-steps raises")
    assert f"({loop.name} {loop.trips:,.0f})" in doubt
    assert "as with --static" in doubt
    assert answer.notes[0] == doubt
    assert answer.band is None
    assert 0 < answer.time_s < whole.time_s
    # The limit is a count: more of it is more of the loop.
    more = drywarp.analyze(SHORTER_WALK, limits=Limits(2_000_000))
    assert answer.time_s < more.time_s < whole.time_s
    assert drywarp.analyze(SHORTER_WALK, limits=LANES).time_s == answer.time_s


@pytest.mark.parametrize(
    "chosen",
    [
        {"full_emulation": True},
        {"blocks": 2},
        {"confidence": 0.5},
        {"fall_back": False},
        {"limits": Limits(10**6, True)},
    ],
    ids=str,
)
def test_what_the_user_chose_is_not_replaced(chosen: dict[str, Any]) -> None:
    with pytest.raises(EmulationLimitError, match=r"after 1,000,000 lane steps in the loop .*; .*--lane-steps raises"):
        drywarp.analyze(WALK, **{"limits": LANES, **chosen})


def test_the_record_has_an_option_of_its_own() -> None:
    with pytest.raises(EmulationLimitError) as stopped:
        drywarp.analyze(WALK, blocks=1, limits=Limits(accesses=1000))
    assert "stopped after 1,000 recorded accesses" in str(stopped.value)
    assert "; --recorded-accesses raises the limit, --static analyses" in str(stopped.value)
    answer = drywarp.analyze(WALK, limits=Limits(accesses=1000))
    assert "no block finished within 1,000 recorded accesses (--recorded-accesses raises the limit)" in answer.doubts[0]


def test_blocks_that_ended_represent_all(heavy: Prepared) -> None:
    answer = drywarp.analyze(HEAVY, limits=LANES)
    assert answer.static is None
    assert answer.sampling is not None
    assert answer.sampling.basis == "limited"
    assert (
        "blocks represent all: the others had not ended when the emulation stopped after 1,000,000" in answer.doubts[0]
    )
    assert "(--lane-steps raises the limit)" in answer.doubts[0]
    assert answer.band is not None
    (part,) = (part for part in answer.band.parts if part.name == "sampled blocks")
    assert part.high == pytest.approx(
        max(answer.sampling.spread[1], uncertainty().sampled.few_different.value), rel=1e-5
    )
    assert part.high > 2
    # The heavy blocks had run further than the light ones do, which the band knows.
    assert answer.band.low_s < answer.time_s < answer.band.high_s


@settings(max_examples=15)
@given(lane_steps=st.integers(60_000, 30_000_000), accesses=st.integers(1, 400))
def test_what_was_abandoned_leaves_no_trace(heavy: Prepared, lane_steps: int, accesses: int) -> None:
    limits = Limits(lane_steps, accesses=accesses * 100_000)
    found = profile_of(heavy, limits)
    blocks = [block.linear for block in found.blocks]
    whole = emulate(heavy.kernel, heavy.launch, blocks=blocks).profile
    assert [whole.paths[p].blocks.tobytes() for b in whole.blocks for p in b.paths] == [
        found.paths[p].blocks.tobytes() for b in found.blocks for p in b.paths
    ]
    assert np.array_equal(whole.thread_instructions, found.thread_instructions)
    assert len(whole.accesses) == len(found.accesses)
    assert np.array_equal(whole.accesses.warp, found.accesses.warp)
    assert sum(block.weight for block in found.blocks) == pytest.approx(heavy.launch.blocks)
    assert found.sampling is not None
    if found.sampling.basis == "limited":
        low, high = found.sampling.spread
        assert 0 < low <= 1 <= high
        assert [doubt for doubt in (*found.doubts, *found.notes) if "--lane-steps" in doubt]


def test_few_blocks_that_behave_alike_are_a_note_and_not_a_doubt(heavy: Prepared) -> None:
    one = emulate(heavy.kernel, heavy.launch, blocks=fewest(heavy.launch.grid)[:1])
    assert one.profile.sampling is not None
    steps = one.profile.thread_instructions.sum()
    answer = drywarp.analyze(HEAVY, limits=Limits(int(steps * 9)))
    assert answer.sampling is not None
    assert answer.sampling.basis == "limited"
    assert answer.doubts == ()
    assert answer.band is not None
    (part,) = (part for part in answer.band.parts if part.name == "sampled blocks")
    assert part.high == pytest.approx(uncertainty().sampled.few_alike.value)
    assert any("blocks represent all" in note and "(--lane-steps raises them)" in note for note in answer.notes)


def test_comparisons_take_no_loop_that_a_limit_cut_short() -> None:
    with pytest.raises(EmulationLimitError):
        drywarp.compare(WALK, WALK, limits=LANES)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--strict"], "--lane-steps raises the limit, --static analyses the code without running it"),
        (["--blocks", "8"], "--lane-steps raises the limit, --blocks 1 emulates a single block, --static"),
        (["--full-emulation"], "--lane-steps raises the limit, --static"),
        (["--recorded-accesses", "0"], "--recorded-accesses 0: expected a positive number"),
        (["--recorded-accesses", "nan"], "--recorded-accesses nan: expected a positive number"),
    ],
)
def test_at_the_command_line(options: list[str], expected: str, tmp_path: Path) -> None:
    (tmp_path / "walk.cu").write_text(WALK)
    command = ["analyze", "walk.cu", "--lane-steps", "1e6"]
    assert expected in complaint(run(*command, *options, cwd=tmp_path))
    answered = run(*command, cwd=tmp_path)
    assert answered.returncode == 0
    assert answered.stdout.startswith("No block finished within 1,000,000 lane steps")
    assert "given" not in [line.split()[-1] for line in answered.stdout.splitlines() if line.startswith("L1 ")]
