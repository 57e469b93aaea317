"""Clusters of one block, elected lanes, and what else Hopper's kernels are full of."""

from __future__ import annotations

import numpy as np
import pytest

from tests.effort import first

from .support import run

ARCHES = ("sm_90", "sm_100", "sm_120")


@pytest.mark.parametrize("arch", first(ARCHES))
def test_every_block_is_its_own_cluster(arch):
    names = (
        "cluster_ctarank cluster_nctarank cluster_ctaid.x cluster_nctaid.x cluster_ctaid.y cluster_nctaid.y"
        " clusterid.x clusterid.y nclusterid.x nclusterid.y nclusterid.z"
    ).split()
    reads = "".join(
        f'asm volatile("mov.u32 %0, %%{name};" : "=r"(r)); out[{n}] = r;' for n, name in enumerate(names)
    )  # fmt: skip
    source = f"""extern "C" __global__ void k(unsigned* all) {{
      unsigned r, *out = all + 11 * (blockIdx.x + gridDim.x * blockIdx.y); {reads} }}"""
    got = run(source, (5, 3), 1, np.zeros(15 * 11, np.uint32), arch=arch).buffer("all").reshape(3, 5, 11)
    want = np.array([[[0, 1, 0, 1, 0, 1, x, y, 5, 3, 1] for x in range(5)] for y in range(3)])
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("arch", first(ARCHES))
@pytest.mark.parametrize("dims", ["", "__cluster_dims__(1, 1, 1)"])
def test_the_barrier_of_a_cluster_of_one(arch, dims):
    source = f"""extern "C" __global__ void {dims} k(const int* in, int* out) {{
      __shared__ int s[128]; int t = threadIdx.x;
      for (int i = 0; i < 3; ++i) {{
        s[t] = in[128 * i + t];
        asm volatile("barrier.cluster.arrive.release;"); asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
        out[128 * i + t] = s[127 - t];
        asm volatile("barrier.cluster.arrive;"); asm volatile("barrier.cluster.wait;" ::: "memory"); }} }}"""
    data = np.arange(384, dtype=np.int32)
    got = run(source, 2, 128, data, np.zeros_like(data), arch=arch).buffer("out")
    np.testing.assert_array_equal(got.reshape(3, 128), data.reshape(3, 128)[:, ::-1])


@pytest.mark.parametrize("arch", first(ARCHES))
def test_one_lane_is_elected(arch):
    source = """extern "C" __global__ void k(unsigned* lanes, int* chosen) {
      unsigned mask = threadIdx.x < 32 ? 0xffffffff : 0xfff0; unsigned lane = 99; int p = 0;
      if (threadIdx.x < 32 || (0xfff0 >> threadIdx.x % 32 & 1))
        asm volatile("{.reg .pred P; elect.sync %0|P, %2; selp.s32 %1, 1, 0, P;}" : "=r"(lane), "=r"(p) : "r"(mask));
      lanes[threadIdx.x] = lane; chosen[threadIdx.x] = p; }"""
    got = run(source, 1, 64, np.zeros(64, np.uint32), np.zeros(64, np.int32), arch=arch)
    lanes, chosen = got.buffer("lanes").reshape(2, 32), got.buffer("chosen").reshape(2, 32)
    assert (lanes[0] == 0).all()
    assert (lanes[1][4:16] == 4).all()
    assert chosen[0].tolist() == [1] + [0] * 31
    assert np.flatnonzero(chosen[1]).tolist() == [4]


def test_registers_handed_over_and_dependent_launches_change_nothing():
    source = """extern "C" __global__ void __launch_bounds__(256, 1) k(int* out) {
      asm volatile("griddepcontrol.wait;");
      if (threadIdx.x < 128) asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
      else asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
      asm volatile("griddepcontrol.launch_dependents;");
      out[threadIdx.x] = threadIdx.x; }"""
    got = run(source, 1, 256, np.zeros(256, np.int32), arch="sm_90a").buffer("out")
    np.testing.assert_array_equal(got, np.arange(256))
