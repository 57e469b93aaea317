"""Programs that make their own tensor maps through the driver."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.program.conftest import built

INVALID, UNSUPPORTED = 1, 801


@pytest.fixture(scope="session")
def maps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(Path(__file__).with_name("tensor_maps.cu"), tmp_path_factory.getbasetemp(), "sm_90a")


def test_boxes_go_where_the_programs_own_maps_say(run: Any, maps: Path) -> None:
    ran = run(options=("--gpu", "h100"), started=maps)
    assert ran.output.splitlines() == [
        "missing: 0 1",
        f"narrow rows: {INVALID}",
        f"wider than the swizzle: {INVALID}",
        f"misaligned: {INVALID}",
        f"interleaved: {UNSUPPORTED}",
        "cudaSuccess",
        "0 wrong",
        f"refused images: {INVALID} {INVALID} {INVALID}",
        "cudaSuccess",
        "0 wrong pixels",
    ]
    assert ran.status == 0
    kernels = sorted(ran.result["kernels"], key=lambda kernel: kernel["kernel"])
    assert [kernel["kernel"].split("(")[0] for kernel in kernels] == ["neighbours", "twice"]
    for kernel in kernels:
        assert kernel["launches"] == kernel["computed"] == 1
        assert kernel["time_s"] > 0
    assert "interleaved layouts" in ran.report


def test_a_kept_launch_holds_its_tensor_maps(run: Any, maps: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    assert run(options=("--gpu", "h100", "--keep", str(kept)), started=maps).status == 0
    from drywarp import analyze

    launches = sorted(kept.glob("*.launch"))
    assert len(launches) == 2
    for launch in launches:
        assert analyze(launch, gpu="h100").time_s > 0


def test_larger_pieces_and_elements_of_less_than_a_byte(run: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Swizzles of 32- and 64-byte pieces; 4- and 6-bit elements, packed or padded. What is not emulated is refused."""
    forms = built(Path(__file__).with_name("tensor_map_forms.cu"), tmp_path_factory.getbasetemp(), "sm_100a")
    ran = run(options=("--gpu", "b200"), started=forms)
    assert ran.output.splitlines() == [
        "32 bytes: 0 0",
        "64 bytes: 0 0",
        "pairs: 0 0",
        f"odd: {INVALID}",
        f"flipped: {UNSUPPORTED}",
        "padded 4: 0 0",
        "padded 4: 0 0",
        "padded 6: 0 0 0",
        f"refused: {INVALID} {INVALID} {INVALID} {INVALID} {INVALID} {INVALID}",
        "packed 6: 0 0 0",
        "packed 4: cudaErrorLaunchFailure",
    ]
    assert ran.status == 0
    assert "cuTensorMapEncode" in ran.report
    assert "a map of 4-bit elements, which no such copy takes" in ran.report


def test_kernels_make_and_change_tensor_maps(run: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    """`tensormap.replace` writes what `cuTensorMapEncodeTiled` does, and copies go by the map as it then is."""
    made = built(Path(__file__).with_name("tensor_map_made.cu"), tmp_path_factory.getbasetemp(), "sm_90a")
    ran = run(options=("--gpu", "h100"), started=made)
    assert ran.output.splitlines() == [
        "encoded: 0, the same bytes",
        "encoded: 0",
        "cudaSuccess",
        "0 wrong, 160 outside",
        "nothing: cudaErrorLaunchFailure",
    ]
    assert "there is no tensor map at this address" in ran.report
