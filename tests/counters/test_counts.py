"""Counters of kernels whose counts can be worked out by hand, and laws that hold for all."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest

from drywarp.analysis.counters import GROUPS, METRICS, describe
from drywarp.analysis.counters.count import count, rates_of
from drywarp.analysis.prepare import prepare_kernel
from drywarp.analysis.request import Options
from drywarp.cli.main import run
from drywarp.hardware import load_gpu
from drywarp.kernel.isa.nvidia.opcodes import OPCODES
from tests.effort import in_turn

EXAMPLES = Path(__file__).parents[2] / "examples"
SCHEMA = json.loads((files("drywarp") / "report" / "schema" / "counts.schema.json").read_text(encoding="utf-8"))
L1 = "l1tex__t_{}_pipe_lsu_mem_global_op_{}.sum"
SHARED = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{}.sum"

STRIDED = """
__global__ void strided(float* x, float* y, int stride) {
  __shared__ float tile[32 * 33];
  int lane = threadIdx.x;
  tile[lane * stride] = x[blockIdx.x * 1024 + lane * 8];
  __syncthreads();
  y[blockIdx.x * 32 + lane] = tile[lane];
}
"""

HALF = """
__global__ void half(float* y, int n) {
  int i = blockIdx.x * 32 + threadIdx.x;
  if (threadIdx.x < n) {
    float sum = 0;
    for (int k = 0; k < 100; k++) sum = sum * y[i] + 1.0f;
    y[i] = sum;
  }
}
"""


def test_saxpy_by_hand() -> None:
    found = count(EXAMPLES / "saxpy.cu", gpu="rtx2080ti").counts
    warps, threads = 65536 * 8, 1 << 24
    assert found[L1.format("requests", "ld")] == 2 * warps
    assert found[L1.format("sectors", "ld")] == 2 * warps * 4
    assert found[L1.format("sectors", "st")] == found["lts__t_sectors_op_write.sum"] == warps * 4
    assert found["lts__t_sectors_op_read.sum"] == found["dram__sectors_read.sum"] == 2 * warps * 4
    assert found["smsp__sass_thread_inst_executed_op_fp32_pred_on.sum"] == threads
    assert found["smsp__inst_executed_pipe_lsu.sum"] >= 3 * warps
    assert found["smsp__thread_inst_executed_per_inst_executed.ratio"] == 32


@pytest.mark.parametrize("stride", [1, 2, 8, 32, 33])
def test_bank_conflicts_and_strides(stride: int) -> None:
    degree = {1: 1, 2: 2, 8: 8, 32: 32, 33: 1}[stride]
    args = {"x": "f32[65536]", "y": "f32[2048]", "stride": stride}
    found = count(STRIDED, gpu="a100", grid=64, block=32, args=args).counts
    assert found[SHARED.format("st")] == 64 * degree
    assert found[SHARED.format("ld")] == 64
    assert found[L1.format("sectors", "ld")] == 64 * 32
    assert found[L1.format("requests", "ld")] == 64


@pytest.mark.parametrize("lanes", [1, 5, 32])
def test_lanes_that_are_off_do_not_count_as_threads(lanes: int) -> None:
    found = count(HALF, gpu="a100", grid=8, block=32, args={"y": "f32[256]", "n": lanes}).counts
    fp32 = found["smsp__sass_thread_inst_executed_op_fp32_pred_on.sum"]
    assert fp32 == 8 * lanes * 100
    assert found["smsp__thread_inst_executed_pred_on.sum"] <= found["smsp__thread_inst_executed.sum"]
    ratio = found["smsp__thread_inst_executed_per_inst_executed.ratio"]
    # The instructions before the branch run with all lanes.
    assert ratio == 32 if lanes == 32 else lanes < ratio < lanes + 3


@pytest.mark.parametrize(
    ("name", "gpu"),
    in_turn(["tiled_matmul", "histogram", "collatz", "half2", "transpose_naive"], ["rtx2080ti", "h100"]),
)
def test_laws(name: str, gpu: str) -> None:
    found = count(EXAMPLES / f"{name}.cu", gpu=gpu).counts
    executed, lanes = found["smsp__inst_executed.sum"], found["smsp__thread_inst_executed.sum"]
    held = found["smsp__thread_inst_executed_pred_on.sum"]
    groups = sum(found[f"smsp__sass_thread_inst_executed_op_{group}_pred_on.sum"] for group in GROUPS)
    pipes = sum(value for metric, value in found.items() if metric.startswith("smsp__inst_executed_pipe_"))
    assert groups <= held * (1 + 1e-6)
    assert held <= lanes * (1 + 1e-6)
    assert lanes <= 32 * executed * (1 + 1e-6)
    assert pipes <= executed * (1 + 1e-6)
    for kind in ("ld", "st"):
        assert found[L1.format("sectors", kind)] >= found[L1.format("requests", kind)]
    assert 0 < found["sm__warps_active.avg.pct_of_peak_sustained_active"] <= 100
    assert all(describe(metric) for metric in found)


def test_a_register_cap_spills_to_local_memory() -> None:
    source = """
    __global__ void wide(float* x) {
      float v[64];
      for (int i = 0; i < 64; i++) v[i] = x[i * 32 + threadIdx.x];
      __syncthreads();
      for (int i = 0; i < 64; i++) x[i * 32 + threadIdx.x] = v[(i * 7 + 3) & 63] * v[i] + v[(i * 11 + 5) & 63];
    }
    """
    free = count(source, gpu="a100", grid=4, block=32, args={"x": "f32[2048]"})
    capped = count(source, gpu="a100", grid=4, block=32, args={"x": "f32[2048]"}, max_registers=32)
    local = "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum"
    assert free.registers > 64 > capped.registers
    assert free.counts[local] == 0 < capped.counts[local]
    # Stores to local memory are written through.
    outputs = capped.counts[L1.format("sectors", "st")]
    assert capped.counts["lts__t_sectors_op_write.sum"] == outputs + capped.counts[local]


def test_groups_are_disjoint_and_known() -> None:
    assert {row.group for row in OPCODES.values()} == {*GROUPS, ""}
    assert any(row.settled for row in OPCODES.values())
    assert describe("smsp__inst_executed_pipe_fma.sum") == METRICS["smsp__inst_executed_pipe_*.sum"]
    assert describe("no__such_metric") == ""


def test_json_and_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["counts", str(EXAMPLES / "saxpy.cu"), "--gpu", "t4", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    jsonschema.validate(found, SCHEMA)
    assert run(["counts", str(EXAMPLES / "saxpy.cu"), "--gpu", "t4"]) == 0
    text = capsys.readouterr().out
    assert f"{found['counts']['smsp__inst_executed.sum']:,}" in text
    assert run(["counts", str(EXAMPLES / "saxpy.cu"), "--gpu", "t4", "--explain"]) == 0
    assert describe("dram__sectors_read.sum") in capsys.readouterr().out


def test_only_simulated_figures_depend_on_the_clock(capsys: pytest.CaptureFixture[str]) -> None:
    found = {}
    for clock in (705, 1410):
        line = ["counts", str(EXAMPLES / "saxpy.cu"), "--gpu", "a100", "--clock", str(clock)]
        assert run([*line, "--json"]) == 0
        found[clock] = json.loads(capsys.readouterr().out)
        assert found[clock]["assumptions"]["clock_hz"] == clock * 1e6
        assert run(line) == 0
        assert f"SM clock: {clock} MHz" in capsys.readouterr().out
    slow, fast = (found[clock]["counts"] for clock in (705, 1410))
    assert {name for name in fast if fast[name] != slow[name]} == {"sm__warps_active.avg.pct_of_peak_sustained_active"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["counts", "nowhere.cu"], "nowhere.cu: no such file"),
        (["counts", str(EXAMPLES / "saxpy.cu"), "--clock", "0"], "--clock 0: expected a positive number"),
        (["counts", str(EXAMPLES / "saxpy.cu"), "--max-registers", "8"], "--max-registers"),
        (["counts", str(EXAMPLES / "saxpy.cu"), "--gpu", "papers/example"], "only takes abstract workloads"),
    ],
)
def test_bad_usage(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert said in captured.err
    assert captured.err.count("\n") == 1


def test_what_lies_in_the_l2_at_the_end_is_not_yet_in_dram() -> None:
    args = {"n": 1 << 20, "a": 2.0, "x": "f32[1048576]", "y": "f32[1048576]"}
    found = count(EXAMPLES / "saxpy.cu", gpu="rtx2080ti", grid=4096, block=256, args=args, simulated=False).counts
    written, l2 = 4096 * 256 // 8, load_gpu("rtx2080ti").memory.l2.bytes // 32
    # Both arrays overflow it; y is written where it was read, so that half of what stays is dirty.
    assert found["lts__t_sectors_op_write.sum"] == written
    assert written - l2 / 2 <= found["dram__sectors_write.sum"] < written
    small = {"n": 1 << 12, "a": 2.0, "x": "f32[4096]", "y": "f32[4096]"}
    cold, warm = (
        count(
            EXAMPLES / "saxpy.cu",
            gpu="rtx2080ti",
            grid=16,
            block=256,
            args=small,
            simulated=False,
            options=Options(warm_l2=warm),
        )
        for warm in (False, True)
    )
    assert (cold.l2_state, warm.l2_state) == ("cold", "warm")
    assert (cold.counts["dram__sectors_read.sum"], warm.counts["dram__sectors_read.sum"]) == (1024, 0)
    fits = cold.counts
    assert (fits["lts__t_sectors_op_write.sum"], fits["dram__sectors_write.sum"]) == (512, 0)
    assert "sm__warps_active.avg.pct_of_peak_sustained_active" not in fits


def test_long_code_is_fetched_from_the_l2() -> None:
    lines = "".join(f"v = v * {n + 2}.0f + y[{n % 7}];" for n in range(6000))
    body = f"float v = x[threadIdx.x]; {lines} x[threadIdx.x] = v;"
    source = f"__global__ void longwinded(float* x, float* y) {{ {body} }}"
    args = {"x": "f32[32]", "y": "f32[8]"}
    found = count(source, gpu="rtx2080ti", grid=68, block=32, args=args, simulated=False).counts
    code = found["smsp__inst_executed.sum"] / 68 * 16
    cache = load_gpu("rtx2080ti").memory.instructions
    assert cache is not None
    assert code > 2 * cache.bytes
    data = found["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"]
    fetched = 68 * cache.l2_share * (code - cache.bytes) / 32
    assert fetched < found["lts__t_sectors_op_read.sum"] < fetched + data


def test_pipes_of_special_registers_and_range_checks() -> None:
    """By the published counters of an RTX 2080 Ti: see docs/accuracy.md."""
    source = "__global__ void divide(float* x) { int i = blockIdx.x * 32 + threadIdx.x; x[i] = x[i] / (x[i] + 3.0f); }"
    found = count(source, gpu="rtx2080ti", grid=10, block=32, args={"x": "f32[320]:ones"}, simulated=False).counts
    assert found["smsp__inst_executed_pipe_xu.sum"] == 2 * 10  # MUFU.RCP and FCHK
    assert found["smsp__inst_executed_pipe_lsu.sum"] == 3 * 10  # a load, a store, S2R SR_TID.X


def test_without_a_time_there_are_no_rates() -> None:
    prepared = prepare_kernel(EXAMPLES / "saxpy.cu", gpu="a100")
    assert rates_of(prepared, 0.0) == ()
    achieved = {rate.name: rate.achieved for rate in rates_of(prepared, 0.5)}
    assert achieved["fp32"] == 2 * (1 << 24) / 0.5  # a multiply-add for each element
