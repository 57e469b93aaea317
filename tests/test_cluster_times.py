"""Clusters from the launch to the time: what a GPC holds, what blocks of a cluster await, remote accesses."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from drywarp import analyze, sweep, validate
from drywarp.analysis.prepare import prepare_kernel as prepare
from drywarp.analysis.prepared import Prepared
from drywarp.analysis.request import Options
from drywarp.errors import UsageError
from drywarp.experiments.sweep.space import read_space
from drywarp.frontends.cuda.compile import compile_cuda
from drywarp.hardware import load_gpu
from drywarp.report import terminal
from drywarp.workload.build import build_workload
from tests.emulator.support import run
from tests.emulator.test_clusters import PREFACE

IN_TURN = (
    PREFACE
    + """extern "C" __global__ void k(const float* x, float* y) {
  __shared__ float s[128]; auto c = cg::this_cluster(); int i = blockIdx.x * 128 + threadIdx.x;
  s[threadIdx.x] = x[i]; c.sync();
  const float* from = c.map_shared_rank(s, (c.block_rank() + 1) % c.num_blocks()); float sum = 0;
  for (int n = 0; n < 32; ++n) sum += from[(threadIdx.x + 32 * n) % 128] * n;
  y[i] = sum; c.sync(); }"""
)
COPIED = (
    PREFACE
    + """#ifndef SENDS
#define SENDS 1
#endif
extern "C" __global__ void k(const unsigned* x, unsigned* y) {
  __shared__ alignas(128) unsigned s[2][1024]; __shared__ uint64_t full[2], b;
  auto c = cg::this_cluster(); unsigned rank = c.block_rank();
  begin(full, 1, 0); begin(full + 1, 1, 0); c.sync(); unsigned sum = 0;
  for (int n = 0; n < 8; ++n) { int at = n % 2;
    if (threadIdx.x == 0) {
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 4096;" :: "r"(at(full + at)) : "memory");
    }
    c.sync();
    if (threadIdx.x == 0 && (SENDS == 0 || rank == 0)) {
      const unsigned* from = x + 1024 * (n + 8 * (SENDS ? blockIdx.x / 2 : blockIdx.x));
      MULTICAST; }
    wait(full + at, n / 2 & 1);
    for (int i = threadIdx.x; i < 1024; i += 128) sum += s[at][i]; }
  y[blockIdx.x * 128 + threadIdx.x] = sum; c.sync(); }"""
).replace("at(full + at)", "at(full + slot)").replace("int at = n % 2", "int slot = n % 2").replace(
    "wait(full + at", "wait(full + slot"
).replace("s[at][i]", "s[slot][i]")  # fmt: skip
COPY = {
    1: """asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
      " [%0], [%1], 4096, [%2], %3;" :: "r"(at(s[slot])), "l"(from), "r"(at(full + slot)), "h"((short)3) : "memory")""",
    0: """asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 4096, [%2];"
      :: "r"(at(s[slot])), "l"(from), "r"(at(full + slot)) : "memory")""",
}
ARGS = {"x": "f32[131072]", "y": "f32[131072]"}


def made(source: str, **more: object) -> Prepared:
    return prepare(source, **{"gpu": "h100", "block": 128, "args": ARGS, "grid": 1024, **more})


@pytest.mark.parametrize(("size", "sms"), [(1, 132), (2, 132), (8, 120)])
def test_clusters_fill_only_whole_parts_of_a_gpc(size, sms):
    # One block an SM: all of its shared memory.
    found = made(IN_TURN, shared=200_000, cluster=size)
    assert found.fits.blocks_per_sm == 1
    assert found.costed.sm_count == sms
    assert any("they fill 120 of 132 SMs" in note for note in found.notes) == (size == 8)


def test_clusters_that_are_too_large():
    with pytest.raises(UsageError, match="k: clusters of 32 blocks: expected at most 16 on h100"):
        made(IN_TURN, cluster=32)
    with pytest.raises(UsageError, match="k: clusters of 16 blocks: expected at most 8 on rtx5090"):
        made(IN_TURN, gpu="rtx5090", cluster=16)


def test_remote_loads_take_the_networks_latency_and_rate():
    shared = load_gpu("h100").memory.shared
    costs = {}
    for size in (1, 2):
        found = made(IN_TURN, cluster=size)
        code = found.kernel.instructions
        nodes = [n for path in found.costed.paths for n in path.nodes if code[n.instruction].opcode == "LD"]
        assert {found.behaviour.accesses[n.instruction].remote for n in nodes} == {float(size == 2)}
        costs[size] = {(n.latency_ticks / 240, n.lambda_ticks / 240) for n in nodes}
    assert {latency for latency, _ in costs[1]} == {shared.latency}
    assert {latency for latency, _ in costs[2]} == {shared.remote_latency}
    ((_, rate),) = costs[2]
    assert rate == pytest.approx(128 / shared.remote_bytes_per_cycle, rel=0.01)


def copied(sends: int) -> str:
    return COPIED.replace("#define SENDS 1", f"#define SENDS {sends}").replace("MULTICAST", COPY[sends])


def test_a_block_that_only_receives_waits_as_long_as_the_one_that_sends():
    """Rank 0 copies for both blocks; rank 1 must not be simulated as if its data were always there."""
    args = {"x": "u32[8388608]", "y": "u32[131072]"}
    both, alone = (made(copied(sends), cluster=2, args=args) for sends in (1, 0))
    (only,) = both.costed.block_types
    assert only.weight == pytest.approx(1024)
    assert sum(len(both.costed.paths[path].signals) > 0 for path in only.paths) > 0
    times = [analyze(copied(sends), gpu="h100", grid=1024, block=128, cluster=2, args=args).time_s for sends in (1, 0)]
    # Half the traffic, the same waits.
    assert times[0] == pytest.approx(times[1], rel=0.1)
    assert both.behaviour.dram_read_bytes == pytest.approx(alone.behaviour.dram_read_bytes / 2, rel=0.02)


def test_blocks_with_different_work_are_named():
    source = IN_TURN.replace("n < 32", "n < 32 + 64 * (c.block_rank() == 1)")
    notes = made(source, cluster=2).costed.notes
    assert any("blocks of clusters differ (" in note for note in notes)
    assert not any("differ (" in note for note in made(IN_TURN, cluster=2).costed.notes)


def test_the_barrier_of_a_cluster_holds_the_warps_of_a_block_together():
    profile = run(
        compile_cuda(IN_TURN, arch="sm_90"), 4, 128, *(np.zeros(512, np.float32) for _ in ARGS), cluster=(2, 1, 1)
    ).profile
    workload = build_workload(profile)
    for kind in workload.block_types:
        signals = [workload.paths[path].signals for path in kind.paths]
        # Two cluster barriers, which each of the four warps signals once.
        assert [sum(phase) for phase in zip(*signals, strict=True)] == [4, 4]


def test_the_launch_is_read_from_the_code_or_stated(tmp_path):
    stated = IN_TURN.replace("void k", "void __cluster_dims__(4, 1, 1) k")
    assert made(stated).launch.cluster == (4, 1, 1)
    assert made(IN_TURN, cluster="2,1").launch.cluster == (2, 1, 1)
    comment = "// drywarp: --cluster 2 --grid 1024 --block 128\n" + IN_TURN
    assert prepare(comment, gpu="h100", args=ARGS).launch.cluster == (2, 1, 1)
    static = prepare(stated, gpu="h100", options=Options(static=True))
    assert static.launch.cluster == (4, 1, 1)
    assert static.launch.grid[0] % 4 == 0
    with pytest.raises(UsageError, match="cluster '0': expected one to three positive integers"):
        made(IN_TURN, cluster=0)


RING = (
    PREFACE
    + """constexpr int STAGES = 2, BYTES = 4096;
extern "C" __global__ void k(const unsigned* x, unsigned* y, int tiles) {
  __shared__ alignas(128) unsigned s[STAGES][1024]; __shared__ uint64_t full[STAGES], empty[STAGES];
  auto c = cg::this_cluster(); unsigned rank = c.block_rank(), sum = 0;
  for (int n = 0; n < STAGES; ++n) { begin(full + n, 1, 0); begin(empty + n, 2 * 4, 0); }
  c.sync();
  if (threadIdx.x >= 128) { // a warp that has each block copy half of a tile to both
    if (threadIdx.x == 128) for (int n = 0; n < tiles; ++n) { int slot = n % STAGES;
      if (n >= STAGES) wait(empty + slot, (n / STAGES - 1) & 1);
      const unsigned* from = x + (blockIdx.x / 2 * tiles + n) * 1024 + 512 * rank;
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
        :: "r"(at(full + slot)), "n"(BYTES) : "memory");
      asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
        " [%0], [%1], %2, [%3], %4;" :: "r"(at(s[slot] + 512 * rank)), "l"(from), "n"(BYTES / 2), "r"(at(full + slot)),
        "h"((short)3) : "memory"); } }
  else for (int n = 0; n < tiles; ++n) { int slot = n % STAGES;
    wait(full + slot, n / STAGES & 1);
    for (int i = threadIdx.x; i < 1024; i += 128) sum += s[slot][i] * (rank + 1);
    __syncwarp();
    if (threadIdx.x % 32 < 2) // tells both blocks' copying warps
      asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];"
        :: "r"(map(at(empty + slot), threadIdx.x % 32)) : "memory"); }
  c.sync(); if (threadIdx.x < 128) y[blockIdx.x * 128 + threadIdx.x] = sum; }"""
)


def test_a_ring_that_both_blocks_of_a_cluster_fill():
    tiles, blocks = 7, 8
    data = np.random.default_rng(4).integers(0, 2**32, blocks // 2 * tiles * 1024, dtype=np.uint32)
    kernel = compile_cuda(RING, arch="sm_90")
    got = run(kernel, blocks, 160, data, np.zeros(blocks * 128, np.uint32), tiles, cluster=(2, 1, 1))
    sums = data.reshape(blocks // 2, tiles * 8, 128).sum(axis=1, dtype=np.uint32)
    want = sums[:, None, :] * np.array([1, 2], np.uint32)[:, None]
    np.testing.assert_array_equal(got.buffer("y").reshape(want.shape), want)
    assert not got.profile.notes


def test_a_ring_that_both_blocks_fill_is_simulated_with_its_waits():
    args = {"x": "u32[3784704]", "y": "u32[16896]", "tiles": 56}
    found = prepare(RING, gpu="h100", grid=132, block=160, cluster=2, args=args)
    (kind,) = found.costed.block_types
    signals = np.array([found.costed.paths[path].signals for path in kind.paths]).sum(axis=0)
    # A full phase gets an announcement and the two halves; an empty one two arrivals of each of the four warps.
    assert sorted(set(signals.tolist())) == [3, 5, 8]
    # Each tile is read once for both blocks.
    assert found.behaviour.dram_read_bytes == pytest.approx(66 * 56 * 4096, rel=0.02)
    answer = analyze(RING, gpu="h100", grid=132, block=160, cluster=2, args=args)
    # No faster than one ring of two tiles lets the latency of DRAM be hidden.
    latency = load_gpu("h100").memory.dram.latency_ns * 1e-9
    assert answer.time_s > 56 / 2 * latency


def test_the_answer_states_the_cluster():
    schema = json.loads((Path(terminal.__file__).parent / "schema" / "analyze.schema.json").read_text())
    with_clusters, without = (
        analyze(IN_TURN, gpu="h100", grid=64, block=128, cluster=size, args=ARGS).to_dict() for size in (2, None)
    )
    jsonschema.validate(with_clusters, schema)
    assert with_clusters["launch"]["cluster"] == [2, 1, 1]
    assert "cluster" not in without["launch"]


def test_sweeps_and_tables_of_cluster_sizes(tmp_path: Path) -> None:
    """Rows of a sweep and of a table of measurements say what `analyze` says of each cluster size."""
    (tmp_path / "k.cu").write_text(IN_TURN)
    (tmp_path / "space.toml").write_text(
        'kernel = "k.cu"\ngpus = ["h100"]\ngrid = "1024"\nblock = "128"\nshared = "200000"\ncluster = "BLOCKS"\n'
        "[parameters]\nBLOCKS = [1, 2, 8, 32]\n[args]\n" + "".join(f'{n} = "{v}"\n' for n, v in ARGS.items())
    )
    (tmp_path / "times.csv").write_text("BLOCKS,time_us\n1,60\n2,60\n8,70\n")
    swept = sweep(read_space(tmp_path / "space.toml"), jobs=0).rows
    table = validate(
        tmp_path / "times.csv", kernel=tmp_path / "k.cu", gpu="h100", grid="1024", block="128", shared="200000",
        cluster="BLOCKS", args=ARGS, models=["pipeline"], jobs=1, out=tmp_path / "rows.csv",
    )  # fmt: skip
    alone = [
        analyze(IN_TURN, gpu="h100", grid=1024, block=128, shared=200_000, args=ARGS, cluster=size).time_s
        for size in (1, 2, 8)
    ]
    assert [row.time_s for row in swept[:3]] == pytest.approx(alone, rel=1e-6)
    assert "clusters of 32 blocks: expected at most 16" in swept[3].reason
    assert [row.times["pipeline"] for row in table.rows] == pytest.approx(alone, rel=1e-6)
    assert len({round(time, 12) for time in alone}) == 3


ANSWERED = (
    PREFACE
    + """extern "C" __global__ void k(const float* x, float* y) {
  __shared__ uint64_t b; auto c = cg::this_cluster(); unsigned rank = c.block_rank();
  begin(&b, 1, 0); c.sync();
  auto send = [&] { if (threadIdx.x == 0) asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];"
    :: "r"(map(at(&b), rank ^ 1)) : "memory"); };
  for (int phase = 0; phase < 4; ++phase) {
    if (rank == 1) send();
    wait(&b, phase & 1);
    if (rank == 0) send(); }
  y[blockIdx.x * 128 + threadIdx.x] = x[threadIdx.x]; c.sync(); }"""
)


def test_a_block_that_answers_does_not_await_its_own_answer():
    """Block 1 of two asks and awaits the answer; block 0 awaits the question, at the same place, and then answers."""
    found = analyze(ANSWERED, gpu="h100", grid=264, block=128, args={"x": "f32[128]", "y": "f32[33792]"}, cluster=2)
    assert found.time_s > 0
