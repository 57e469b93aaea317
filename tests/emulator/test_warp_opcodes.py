"""Shuffles, votes, matches and reductions, against models of what the PTX manual says they do."""

from __future__ import annotations

import numpy as np
import pytest

from tests.effort import first

from .support import ARCHES, run

RNG = np.random.default_rng(11)
COUNT = 256


@pytest.mark.parametrize("arch", first(ARCHES))
def test_shuffle_modes_with_segments_and_clamps(arch):
    modes = ["up", "down", "bfly", "idx"]
    body = "\n".join(
        f'asm volatile("{{ .reg .pred p; shfl.sync.{m}.b32 %0|p, %2, %3, %4, -1; selp.u32 %1, 1, 0, p; }}"'
        ' : "=r"(r), "=r"(q) : "r"(t * 7), "r"(b[n * 32 + t]), "r"(c[n]));'
        f" o[((n * 4 + {k}) * 2) * 32 + t] = r; o[((n * 4 + {k}) * 2 + 1) * 32 + t] = q;"
        for k, m in enumerate(modes)
    )
    source = f"""extern "C" __global__ void k(const unsigned* b, const unsigned* c, unsigned* o) {{
        int t = threadIdx.x; unsigned r, q; for (int n = 0; n < 8; ++n) {{ {body} }} }}"""
    controls = [31, 0, 0x1C1F, 0x101F, 0x1803, 0x1E00, 15, 0x180F]
    b = RNG.integers(0, 40, (8, 32)).astype(np.uint32)
    o = run(source, 1, 32, b, np.array(controls, np.uint32), np.zeros((8, 4, 2, 32), np.uint32), arch=arch).buffer("o")
    for n, control in enumerate(controls):
        clamp, segment = control & 31, control >> 8 & 31
        for k, mode in enumerate(modes):
            for lane in range(32):
                amount = int(b[n, lane]) & 31
                lowest = lane & segment
                limit = lowest | clamp & ~segment
                source_lane = {
                    "up": lane - amount,
                    "down": lane + amount,
                    "bfly": lane ^ amount,
                    "idx": lowest | amount & ~segment,
                }[mode]
                valid = source_lane >= limit if mode == "up" else source_lane <= limit
                want = (source_lane if valid else lane) * 7
                assert (int(o[n, k, 0, lane]), int(o[n, k, 1, lane])) == (want, int(valid)), (
                    mode,
                    hex(control),
                    lane,
                    amount,
                )


@pytest.mark.parametrize("arch", first(ARCHES))
def test_votes_matches_and_reductions(arch):
    source = """
extern "C" __global__ void k(const int* a, unsigned* o) {
  int t = threadIdx.x, v = a[t];
  int p;
  o[t] = __all_sync(~0u, v > 0) * 2 + __any_sync(~0u, v == 3);
  o[32 + t] = __ballot_sync(~0u, v & 1);
  o[64 + t] = __match_any_sync(~0u, v);
  o[96 + t] = __match_all_sync(~0u, v, &p) + p;
  o[128 + t] = __match_any_sync(~0u, (long long)v << 40);
  o[160 + t] = __reduce_min_sync(~0u, v - 4);
  o[192 + t] = __reduce_max_sync(~0u, v - 4);
  o[224 + t] = __reduce_or_sync(~0u, v);
  o[256 + t] = __reduce_and_sync(~0u, v | 8);
  o[288 + t] = __reduce_xor_sync(~0u, v);
  o[320 + t] = __reduce_max_sync(~0u, (unsigned)(v - 4));
}"""
    a = RNG.integers(0, 7, 32).astype(np.int32)
    o = run(source, 1, 32, a, np.zeros((11, 32), np.uint32), arch=arch).buffer("o")
    assert set(o[0]) == {2 * int((a > 0).all()) + int((a == 3).any())}
    assert set(o[1]) == {sum(1 << k for k in range(32) if a[k] & 1)}
    match = [sum(1 << k for k in range(32) if a[k] == a[lane]) for lane in range(32)]
    assert o[2].tolist() == match == o[4].tolist()
    assert set(o[3]) == {0}
    assert set(o[5].view(np.int32)) == {a.min() - 4}
    assert set(o[6].view(np.int32)) == {a.max() - 4}
    assert [set(row) for row in o[7:10]] == [
        {np.bitwise_or.reduce(a)},
        {np.bitwise_and.reduce(a | 8)},
        {np.bitwise_xor.reduce(a)},
    ]
    assert set(o[10]) == {int((a - 4).view(np.uint32).max())}


@pytest.mark.parametrize("arch", first(ARCHES))
def test_transposition_of_matrix_fragments(arch):
    source = """
extern "C" __global__ void k(const unsigned* a, unsigned* o) {
  unsigned r;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(r) : "r"(a[threadIdx.x]));
  o[threadIdx.x] = r;
}"""
    a = RNG.integers(0, 2**32, 32).astype(np.uint32)
    o = run(source, 1, 32, a, np.zeros(32, np.uint32), arch=arch).buffer("o")
    np.testing.assert_array_equal(o.view(np.uint16).reshape(8, 8), a.view(np.uint16).reshape(8, 8).T)
