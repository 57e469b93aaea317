"""`drywarp cusp`: needed occupancy over arithmetic intensity."""

from __future__ import annotations

import json

import pytest

from drywarp.cli.main import run
from drywarp.cli.papers import parse_alphas
from drywarp.errors import UsageError
from drywarp.models.cusp import cusp, smallest_occupancy


def test_maxwell() -> None:
    result = cusp("papers/volkov-maxwell")
    volkov = [warps for warps in result.needed["volkov"] if warps is not None]
    highest = volkov.index(max(volkov))
    assert result.alphas[highest] == result.cusp_alpha == pytest.approx(48.1, abs=0.1)
    assert volkov[highest] == result.cusp_warps == pytest.approx(53.5, abs=0.1)
    assert (result.max_warps, result.bounds[0], result.bounds[-1]) == (64, "memory", "issue")
    # The prior models have no cusp (§7.10).
    for name in ("zhang_owens", "wfg"):
        assert max(warps or 0 for warps in result.needed[name][highest:]) <= 31
    assert all(warps is None or warps >= 1 for needed in result.needed.values() for warps in needed)


@pytest.mark.parametrize(
    "gpu", ["papers/volkov-g80", "papers/gpumech", "papers/gtx280", "papers/c2050", "a100", "h100"]
)
def test_other_gpus(gpu: str) -> None:
    result = cusp(gpu, share=0.9)
    assert result.cusp_warps > 1
    assert ("volkov_contention" in result.needed) == gpu.startswith("papers/volkov")
    assert all(len(needed) == len(result.alphas) for needed in result.needed.values())


@pytest.mark.parametrize("partner", ["sfu", "shared"])
def test_other_instructions(partner: str) -> None:
    assert "volkov_contention" not in cusp("papers/volkov-fermi", partner=partner).needed
    assert partner in cusp("a100", partner=partner, alphas=(0.1, 100)).bounds


@pytest.mark.parametrize(
    ("partner", "before_adds", "needed"),
    # §4.7, Maxwell: Λ 9 and 22 towards adds. α = 4: (9 + 4 · 6) · 0.8 IPC; (22 + 4 · 6) · 0.8 IPC.
    [("sfu", 9, 26.4), ("shared", 22, 36.8)],
)
def test_latency_depends_on_what_waits_for_it(partner: str, before_adds: float, needed: float) -> None:
    result = cusp("papers/volkov-maxwell", partner=partner, alphas=(0.5, 4))
    assert result.mix.mem_lat_alu == before_adds
    assert result.needed["volkov"][1] == pytest.approx(needed)
    # Below α = 1 only the share α of them is followed by an add.
    half = (result.mix.mem_lat + before_adds) / 2 + 0.5 * result.mix.alu_lat
    assert result.needed["volkov"][0] == pytest.approx(half * min(1.0, 4 / 1.5))
    assert cusp("papers/volkov-kepler", partner=partner, alphas=(4,)).mix.mem_lat_alu is None


def test_a_share_of_the_peak_needs_fewer_warps() -> None:
    whole, part = (cusp("papers/volkov-fermi", share=share).needed["volkov_contention"] for share in (1.0, 0.9))
    assert all(a is not None and b is not None and a > b for a, b in zip(whole, part, strict=True))


def test_saturation_that_is_never_reached() -> None:
    assert smallest_occupancy(lambda n: min(n, 7), 1.0) == 7
    assert smallest_occupancy(lambda n: n, 1.0) is None


@pytest.mark.parametrize(
    "wrong",
    [{"share": 0}, {"share": 1.1}, {"alphas": ()}, {"alphas": (0, 1)}, {"alphas": (1, float("inf"))}, {"partner": "x"}],
)
def test_wrong_usage(wrong: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        cusp("papers/volkov-fermi", **wrong)  # type: ignore[arg-type]


def test_the_verb(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["cusp", "--gpu", "papers/volkov-kepler"]) == 0
    text = capsys.readouterr().out
    assert "cusp at α = " in text
    assert "o volkov" in text
    assert run(["cusp", "--gpu", "papers/volkov-kepler", "--alpha", "1-4", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [entry["alpha"] for entry in answer["models"]["volkov"]] == pytest.approx([1, 2**0.5, 2, 8**0.5, 4])
    assert answer["models"]["cuda_guide"][0]["needed_warps"] is None
    assert set(answer["cusp"]) == {"alpha", "needed_warps"}
    assert run(["cusp", "--alpha", "4-1"]) == 2
    assert "--alpha '4-1'" in capsys.readouterr().err


def test_intensities() -> None:
    assert parse_alphas("8,16,49") == [8, 16, 49]
    assert parse_alphas("2-2") == [2]
    with pytest.raises(UsageError, match="expected a range"):
        parse_alphas("many")
