"""Terms of the older models: MWP and CWP over N with their case, CPI, paths, arcs, Algorithms 1 and 2."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hong_kim_kernels import tiled_matmul
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples

from drywarp.analysis.every_model import compare_models
from drywarp.models import mwp_cwp_2009 as hk
from drywarp.models.base import get_model
from drywarp.models.coalescing import coalescing
from drywarp.models.terms import terms_over
from drywarp.workload.cost import BlockType

CASES = {"few warps": "latency", "memory": "memory", "computation": "computation"}


def test_table_2_over_all_occupancies() -> None:
    """MWP 2.28, CWP min(34.18, N); from 3 warps on memory-bound (Figs. 21 to 23); CPI by Eq. 25."""
    terms = terms_over(tiled_matmul(), (4, 8, 12, 16, 20))
    last = terms.parallelism[-1]
    assert (last.n, last.cwp, last.case) == (20, 20, "memory")
    assert (last.mwp, last.peak_bw) == (pytest.approx(730 / 320), pytest.approx(28.5, abs=0.1))
    assert last.exec_cycles == pytest.approx(38428.2, abs=0.1)
    # 33 instructions a warp, 4 warps a block, 5 blocks on the SM.
    assert last.cpi == pytest.approx(last.exec_cycles / (33 * 4 * 5))
    assert [p.cwp for p in terms.parallelism] == [4, 8, 12, 16, 20]


@pytest.mark.parametrize(
    ("n", "mwp", "cwp", "comp", "mem", "case"),
    [
        (2, 2, 2, 10, 5, "few warps"),
        (8, 2, 4, 5, 10, "memory"),
        (8, 8, 4, 5, 10, "computation"),
        (8, 8, 4, 10, 5, "memory"),
    ],
)
def test_the_three_cases_under_their_printed_conditions(
    n: float, mwp: float, cwp: float, comp: float, mem: float, case: str
) -> None:
    assert hk.case_of(n, mwp, cwp, comp, mem) == case


def test_the_case_is_the_one_that_the_model_takes() -> None:
    answer = compare_models("papers/alpha-mix", settings={"alpha": 16}, models=["mwp_cwp_2009"])
    assert answer.terms is not None
    curve = answer.predictions["mwp_cwp_2009"].curve
    for point, term in zip(curve, answer.terms.parallelism, strict=True):
        assert (point.bound == "latency") == (term.case == "few warps")
        assert point.cycles_per_run == pytest.approx(term.exec_cycles)  # the kernel has no barriers


def test_paths_add_up_for_a_warp_that_takes_all() -> None:
    """§6.3: a warp whose threads diverge takes the sum of its paths; warps that agree take their own."""
    work = tiled_matmul()
    longer = replace(work.paths[0], program=work.paths[0].program * 2)
    two = replace(work, paths=(work.paths[0], longer), block_types=(BlockType((0, 0, 0, 1), 1.0),))
    terms = terms_over(two, (20,))
    assert [path.share for path in terms.paths] == [0.75, 0.25]
    assert [path.instructions for path in terms.paths] == [33, 66]
    assert terms.all_paths == pytest.approx(sum(path.cycles for path in terms.paths))
    alone = get_model("mwp_cwp_2009").predict(work, (20,)).curve[0].cycles_per_run
    assert terms.paths[0].cycles == pytest.approx(alone)


def test_arcs_of_the_example_are_those_of_figure_5() -> None:
    """ω = 1: 9 for c1 and c2 before c3 (with their λ), Λ_mem 6 exposed; computations hide each other from λ · α on."""
    answer = compare_models("papers/example", occupancies=range(1, 13), models=["wfg"])
    assert answer.terms is not None
    arcs = {(arc.node, arc.arc): arc for arc in answer.terms.arcs}
    assert (arcs[0, "transition"].published[0], arcs[1, "exposed"].published[0]) == (9, 6)
    assert arcs[0, "transition"].published[-1] == 3  # α · λ_comp
    assert arcs[1, "transition"].published == (1,) * 12  # λ_mem^instr
    # Eq. 36 has no lower bound; Eq. 42 divides by ω.
    assert arcs[1, "exposed"].published[-1] < 0
    assert arcs[1, "exposed"].corrected[0] == 6
    one, two = (arcs[1, "exposed"].published[at] for at in (0, 1))
    assert one - two == pytest.approx((arcs[0, "transition"].published[1] + arcs[2, "transition"].published[1] + 2) / 3)


@given(st.integers(0, 64), st.integers(1, 40), st.sampled_from((1, 2, 4, 8, 16)))
@settings(max_examples=examples(200))
def test_algorithms_on_a_constant_step(start: int, step: int, size: int) -> None:
    indices = tuple(start + step * lane for lane in range(32))
    term = coalescing(3, 7, size, [(indices, 5), (tuple(range(32)), 15)])
    assert term is not None
    assert term.coalesced in ((0.75, 1.0) if size >= 4 else (0.0,))
    assert term.before_1_3 == pytest.approx(32 - 31 * term.coalesced)
    assert term.from_1_3 >= 1


def test_no_accesses_and_odd_sizes_have_no_term() -> None:
    assert coalescing(0, 0, 4, []) is None
    assert coalescing(0, 0, 3, [(tuple(range(32)), 1)]) is None


def test_accesses_of_a_real_kernel() -> None:
    """The naive transposition reads rows and writes columns."""
    answer = compare_models("examples/transpose_naive.cu", "a100", models=["mwp_cwp_2009"])
    assert answer.terms is not None
    load, store = answer.terms.accesses
    assert (load.coalesced, load.before_1_3, load.from_1_3) == (1, 1, 1)
    assert (store.coalesced, store.before_1_3) == (0, 32)
    assert store.from_1_3 > 32
    assert load.line == store.line > 0


def test_without_memory_there_is_neither_mwp_nor_cwp() -> None:
    answer = compare_models("papers/itilp", models=["gpuperf"])
    assert answer.terms is not None
    assert answer.terms.parallelism == ()
    assert all(arc.kind == "computation" for arc in answer.terms.arcs)
