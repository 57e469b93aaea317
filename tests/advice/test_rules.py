"""Every rule on a kernel of ours that has its problem, and on the same kernel without it."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files
from pathlib import Path

import pytest

import drywarp
from drywarp.analysis.advice.rules import all_rules, explained, meanings, rule_texts
from drywarp.analysis.result.answer import limit_names
from drywarp.analysis.result.detail import LEAST_GAIN, Finding, RuleText
from drywarp.errors import UsageError
from drywarp.hardware import gpu_names, load_gpu
from drywarp.pipeline.reasons import REASONS
from tests.effort import only

from .kernels import PAIRS, Launch

QUICK = ("uncoalesced-access", "atomics", "idle-threads", "tail-effect", "integer-division")
"""Asked by default; every rule by itself is in tests/advice/test_rules_by_hand.py."""
COMPILED_ONLY = {"unrolling"}
"""Rules that say something with --advice only; tests/advice/test_study.py has them."""


@cache
def answer(launch: tuple[str, tuple[int, ...], int, tuple[tuple[str, str], ...], str]) -> drywarp.Analysis:
    source, grid, block, args, gpu = launch
    return drywarp.analyze(source, gpu=gpu, grid=grid, block=block, args=dict(args))


def findings(launch: Launch) -> tuple[Finding, ...]:
    return answer((launch.source, launch.grid, launch.block, tuple(launch.args.items()), launch.gpu)).findings


def test_every_rule_has_its_kernels() -> None:
    assert set(PAIRS) | COMPILED_ONLY == set(all_rules())


@pytest.mark.parametrize("rule", only(PAIRS, *QUICK))
def test_the_rule_finds_its_problem(rule: str) -> None:
    pair = PAIRS[rule]
    found = findings(pair.bad)
    mine = next((finding for finding in found if finding.rule == rule), None)
    assert mine is not None, f"found only {[finding.rule for finding in found]}"
    assert mine.gain >= pair.gain
    assert not pair.top or found[0] == mine
    if pair.line:
        assert pair.line in mine.lines_of("")
    assert mine.evidence
    assert mine.remedy


@pytest.mark.parametrize("rule", only(PAIRS, *QUICK))
def test_the_rule_is_silent_without_it(rule: str) -> None:
    assert rule not in {finding.rule for finding in findings(PAIRS[rule].good)}


READ_BACK = """#include <cuda.h>
#include <stdint.h>
__global__ void k(const __grid_constant__ CUtensorMap A, unsigned* out) {
  __shared__ __align__(1024) char tile[64 * 128]; __shared__ uint64_t full; unsigned sum = 0;
  uint32_t to = (uint32_t)__cvta_generic_to_shared(tile), barrier = (uint32_t)__cvta_generic_to_shared(&full);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(barrier));
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 8192;" :: "r"(barrier) : "memory");
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0],"
      " [%1, {%2, %3}], [%4];" :: "r"(to), "l"(&A), "r"(0), "r"(64 * (int)blockIdx.x), "r"(barrier) : "memory");
  }
  __syncthreads();
  asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; @!p bra again; }"
    :: "r"(barrier) : "memory");
  for (int turn = 0; turn < 512; ++turn) {
    unsigned a, b, c, d, row = (threadIdx.x + 32 * turn) % 64, piece = (turn + threadIdx.x / 64) % 8;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
      : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(to + row * 128 + (SWIZZLED) * 16));
    sum += a ^ b ^ c ^ d;
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
"""


def test_a_tile_is_read_without_conflicts_only_with_its_swizzle() -> None:
    def found(swizzle: int, piece: str) -> dict[str, Finding]:
        args = {"A": f"tensormap(box=64x64,swizzle={swizzle}):f16[33792,64]:random", "out": "u32[67584]"}
        source = READ_BACK.replace("SWIZZLED", piece)
        return {one.rule: one for one in drywarp.analyze(source, gpu="h100", grid=528, block=128, args=args).findings}

    # Eight rows of 128 bytes begin in the same bank, four times.
    conflicts = found(0, "piece")["bank-conflicts"]
    assert conflicts.gain > 2
    assert conflicts.evidence.startswith("32.0 wavefronts per access")
    assert "bank-conflicts" not in found(128, "piece ^ row % 8")


@pytest.mark.parametrize("rule", only(PAIRS, *QUICK))
def test_findings_are_sorted_and_none_gains_next_to_nothing(rule: str) -> None:
    for launch in (PAIRS[rule].bad, PAIRS[rule].good):
        gains = [finding.gain for finding in findings(launch)]
        assert gains == sorted(gains, reverse=True)
        assert all(gain >= LEAST_GAIN for gain in gains)


@pytest.mark.parametrize("text", rule_texts(), ids=lambda text: text.name)
def test_every_section_of_a_rule_says_something(text: RuleText) -> None:
    for section in (text.title, text.what, text.why, text.evidence, text.change, text.before, text.after):
        assert len(section.strip()) > 10
    assert text.before != text.after


def test_there_is_no_text_without_a_rule() -> None:
    texts = tomllib.loads((files("drywarp.analysis.advice") / "rules.toml").read_text(encoding="utf-8"))
    assert sorted(texts) == list(all_rules())


def test_the_page_lists_every_rule() -> None:
    page = (Path(__file__).parents[2] / "docs" / "advice.md").read_text()
    assert re.findall(r"^\| `([a-z0-9-]+)` \|", page, re.MULTILINE) == list(all_rules())


def test_an_unknown_rule_is_named_with_those_that_exist() -> None:
    with pytest.raises(UsageError, match=r"no rule 'speed'.*uncoalesced-access"):
        rule_texts("speed")


def test_every_stall_reason_and_limit_has_a_text() -> None:
    by_kind = {kind: {m.name for m in meanings() if m.kind == kind} for kind in ("stall reason", "limiter")}
    assert by_kind["stall reason"] == set(REASONS)
    subsystems = {name for gpu in gpu_names() for name in load_gpu(gpu).subsystems}
    assert by_kind["limiter"] == {*subsystems, *limit_names()} == set(limit_names())
    for meaning in meanings():
        assert min(len(text) for text in (meaning.title, meaning.what, meaning.helps)) > 10
        assert set(meaning.rules) <= set(all_rules())


@pytest.mark.parametrize(
    ("word", "names"),
    [
        ("tail", ["tail-effect"]),
        ("Bank_Conflicts", ["bank-conflicts"]),
        ("long", ["long_scoreboard"]),
        ("DRAM", ["dram"]),
        ("sfu", ["sfu"]),
        ("latency", ["latency"]),  # though latency-bound begins like it
        ("atomics", ["atomics", "atomics"]),  # a rule, and a limiter
        ("not selected", ["not_selected"]),
        ("DRAM bandwidth", ["dram"]),
        ("the lsu pipe", ["lsu"]),
        ("the load-store unit", ["lsu"]),
        ("Special function units", ["xu"]),
        ("issue slots", ["issue"]),
    ],
)
def test_names_to_explain(word: str, names: list[str]) -> None:
    assert [found.name for found in explained(word)] == names


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("occupancy", r"'occupancy' may be occupancy-block-size, occupancy-registers, occupancy-shared-memory"),
        ("long_scorebord", r"nearest: long_scoreboard"),
        ("scoreboard", r"nothing called 'scoreboard': nearest: .*short_scoreboard"),
        ("qqq", r"nothing called 'qqq': drywarp explain lists all names"),
        ("", r"nothing called ''"),
    ],
)
def test_names_that_are_not_clear(word: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        explained(word)
