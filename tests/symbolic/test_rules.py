"""What is assumed where the code does not say: loops, guards, choices, functions, arguments, addresses."""

from __future__ import annotations

import numpy as np
import pytest

from drywarp.errors import UsageError
from drywarp.execution.symbolic import Assumption, Hints, LoopReport, assume_launch, list_loops, static_profile
from tests.effort import first
from tests.symbolic.kernels import compiled, executions_by_line, follow

WHILE = """
__global__ void chase(const int* next, int* out) {
  int at = threadIdx.x;
  while (at >= 0)
    at = next[at];
  out[threadIdx.x] = at;
}
"""
GUARDS = """
__global__ void guards(const float* in, float* out, int n, const int* skip) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  if (skip[i]) return;
  out[i] = in[i] * in[i + n] + in[i + 2 * n] * in[i + 3 * n];
}
"""
CHOICE = """
__global__ void choice(const int* key, int* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (key[i] > 3) {
    for (int k = 0; k < 5; ++k) atomicAdd(&out[key[i] * k], k);
  } else {
    atomicMax(&out[i], i);
  }
}
"""
UNIFORM = """
__global__ void uniform(const int* flags, int* out) {
  if (flags[blockIdx.x]) {
    atomicAdd(&out[threadIdx.x], 1);
    __syncthreads();
    atomicMin(&out[threadIdx.x + 64], 7);
  }
  __syncthreads();
  out[threadIdx.x + 128 * blockIdx.x] = 1;
}
"""


def loop(found: tuple[LoopReport, ...], name: str) -> LoopReport:
    return next(item for item in found if item.name == name)


def texts(found: tuple[Assumption, ...]) -> str:
    return "\n".join(f"{a.line} {a.what}: {a.assumed}" for a in found)


def test_a_loop_that_data_end_runs_sixteen_times_unless_told() -> None:
    found = follow(WHILE)
    (only,) = found.report.loops
    assert (only.trips, only.known, only.line) == (16, "assumed", 4)
    assert "loop L1: 16 iterations" in texts(found.report.assumptions)
    for key in ("L1", "4", "<source>:4"):
        told = follow(WHILE, hints=Hints({key: 5}))
        assert (told.report.loops[0].trips, told.report.loops[0].known) == (5, "given")
        assert executions_by_line(told, "LDG")[5] == 5 * 4 * 2


def test_a_bound_that_is_known_gives_the_trip_count_whatever_its_form() -> None:
    source = """
__global__ void halves(float* x, int n) {
  for (int k = n; k > 0; k >>= 1) x[k * 32] += 1.0f;
  for (int k = threadIdx.x; k < n; k += blockDim.x) x[k * 3] += 1.0f;
}
"""
    found = follow(source, n=1000)
    first, second = (item for item in found.report.loops if item.trips)
    assert (first.trips, first.known) == (10, "derived")
    assert second.known == "derived"
    assert second.trips == pytest.approx(np.mean([-(-(1000 - t) // 64) for t in range(64)]), rel=0.3)
    assert executions_by_line(found, "STG")[4] == sum(-(-(1000 - w * 32) // 64) for w in (0, 1)) * 4


def test_a_stated_trip_count_wins_over_a_derived_one() -> None:
    source = "__global__ void k(float* x, int n) {\n#pragma unroll 1\n for (int i = 0; i < n; ++i) x[i * 32] += 1; }"
    assert follow(source, n=100).report.loops[0].trips == 100
    found = follow(source, n=100, hints=Hints({"L1": 7}))
    assert (found.report.loops[0].trips, found.report.loops[0].known) == (7, "given")
    assert sum(executions_by_line(found, "STG").values()) == 7 * 8


def test_stated_by_line_means_iterations_of_the_source() -> None:
    source = """__global__ void k(const float* x, float* y, int n) { float s = 0;
for (int i = 0; i < n; ++i)
  s += x[i * 32];
y[0] = s; }
"""
    found = follow(source, hints=Hints({"2": 64}))
    taken = [item for item in found.report.loops if item.trips]
    assert len(taken) == 1
    assert taken[0].trips * taken[0].copies == 64
    assert taken[0].copies >= 4
    assert executions_by_line(found, "LDG")[3] == 64 * 8


def test_guards_let_every_thread_pass_unless_they_are_known_not_to() -> None:
    found = follow(GUARDS)
    assert executions_by_line(found, "STG") == {6: 8}
    assert "guard that exits the kernel" in texts(found.report.assumptions)
    # A bound that is given is followed: of 256 threads the first 40 pass.
    known = follow(GUARDS, n=40)
    assert executions_by_line(known, "STG") == {6: 2}


def test_a_choice_that_depends_on_data_is_half_and_half_lane_by_lane() -> None:
    found = follow(CHOICE)
    red = executions_by_line(found, "RED")
    assert sum(red.values()) == 8 * 6
    lanes = [path.lanes.min() for path in found.profile.paths]
    assert lanes == [16] * len(lanes)
    assert "depends on data: taken by 50%" in texts(found.report.assumptions)


def test_the_share_of_a_choice_can_be_stated() -> None:
    for share in (0.25, 0.75):
        found = follow(CHOICE, hints=Hints(taken={"4": share}))
        assert {float(path.lanes.min()) for path in found.profile.paths} == {8.0}
    assert follow(CHOICE, hints=Hints(taken={"<source>:4": 0.0})).profile.paths[0].lanes.min() == 32


@pytest.mark.parametrize(("share", "warps"), [(0.0, 8), (0.5, 8), (1.0, 0)])
def test_a_share_that_is_stated_for_a_guard_is_followed(share: float, warps: int) -> None:
    found = follow(GUARDS, hints=Hints(taken={"5": share}))
    assert executions_by_line(found, "STG").get(6, 0) == warps
    lanes = min(path.lanes.min() for path in found.profile.paths)
    assert lanes == (16 if share == 0.5 else 32)


def test_a_choice_that_all_lanes_make_together_splits_the_warps_and_not_the_lanes() -> None:
    found = follow(UNIFORM, grid=(64, 1, 1))
    counts = executions_by_line(found, "RED")
    assert 0.25 <= counts[4] / 128 <= 0.75
    assert all((path.lanes == 32).all() for path in found.profile.paths)


def test_gathers_are_coalesced_unless_the_line_is_said_to_be_random() -> None:
    source = """__global__ void gather(const float* x, const int* index, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = x[index[i]];
}
"""
    plain = follow(source)
    assert "addresses that depend on data" in texts(plain.report.assumptions)
    loads = [a for a in plain.report.accesses if a.opcode == "LDG"]
    assert [a.known for a in loads] == ["known", "data"]
    assert all(a.affine and a.coefficients == {"tid.x": 4, "ctaid.x": 256} for a in loads)
    random = follow(source, hints=Hints(access={"3": "random"}))
    log = random.profile.accesses
    spread = [len(set(row.tolist())) for row in log.offsets[log.pattern] // 32]
    assert np.median(spread) > 20
    uniform = follow(source, hints=Hints(access={"3": "uniform"}))
    assert not uniform.profile.accesses.offsets[uniform.profile.accesses.pattern].any()


def test_coefficients_of_a_matrix_product() -> None:
    source = """
__global__ void product(const float* a, const float* b, float* c, int n) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  float s = 0;
#pragma unroll 1
  for (int k = 0; k < n; ++k) s += a[y * n + k] * b[k * n + x];
  c[y * n + x] = s;
}
"""
    found = follow(source, grid=(8, 8, 1), block=(16, 16, 1), n=128)
    by_line = {(a.line, a.opcode): a.coefficients for a in found.report.accesses if a.opcode == "STG"}
    assert by_line[7, "STG"] == {"tid.x": 4, "tid.y": 512, "ctaid.x": 64, "ctaid.y": 8192}
    loads = [dict(a.coefficients) for a in found.report.accesses if a.opcode == "LDG"]
    assert {"tid.y": 512, "ctaid.y": 8192, "L1": 4} in loads
    assert {"tid.x": 4, "ctaid.x": 64, "L1": 512} in loads


def test_what_is_spilled_is_known_again_when_it_is_reloaded() -> None:
    # More values at once than registers: addresses go through the stack.
    body = "".join(f"  const float* p{k} = x + (i * {k + 3} ^ n);\n" for k in range(40))
    uses = "".join(f"    s += p{k}[j * {k + 1}];\n" for k in range(40))
    source = (
        "__global__ void __launch_bounds__(1024, 2) spill(const float* x, float* y, int n) {\n"
        f"  int i = threadIdx.x + blockIdx.x * blockDim.x;\n{body}  float s = 0;\n"
        f"#pragma unroll 1\n  for (int j = 0; j < 9; ++j) {{\n{uses}  }}\n  y[i] = s;\n}}"
    )
    kernel = compiled(source)
    assert kernel.resources.local_bytes > 0
    found = follow(source, n=5)
    assert {a.known for a in found.report.accesses} == {"known"}
    assert [a for a in found.report.assumptions if a.what.startswith("addresses")] == []


def test_the_default_launch_follows_the_code() -> None:
    one = "__global__ void a(float* x) { x[threadIdx.x] = 1; }"
    two = "__global__ void __launch_bounds__(64) b(float* x) { x[threadIdx.x + 8 * threadIdx.y] = blockIdx.y; }"
    three = "__global__ void c(float* x) { x[threadIdx.z] = 1; }"
    launches = [assume_launch(compiled(source), blocks=1000).launch for source in (one, two, three)]
    assert [launch.block for launch in launches] == [(256, 1, 1), (8, 8, 1), (16, 4, 4)]
    assert [launch.grid for launch in launches] == [(1000, 1, 1), (32, 32, 1), (10, 10, 10)]
    assumed = dict(assume_launch(compiled(two)).assumed)
    assert "__launch_bounds__" in assumed["block"]
    assert assumed["argument x"].startswith("a buffer")


@pytest.mark.parametrize("arch", first(["sm_80", "sm_120", "sm_75", "sm_90", "sm_100"], 2))
def test_addresses_inside_a_structure_are_told_from_its_numbers(arch: str) -> None:
    source = """
struct View { const float* data; int rows, columns; float* out; };
__global__ void view(View v) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < v.rows * v.columns) v.out[i] = v.data[i] * 2.0f;
}
"""
    found = follow(source, arch=arch)
    assert len(found.report.accesses) == 2
    assert all(a.coefficients == {"tid.x": 4, "ctaid.x": 256} for a in found.report.accesses)
    bases = {int(b) >> 36 for b in found.profile.accesses.base.tolist()}
    assert len(bases) == 2


@pytest.mark.parametrize(
    ("hints", "words"),
    [
        (Hints({"L9": 3}), ["L9", "no such loop", "L1 at <source>:4"]),
        (Hints({"77": 3}), ["77", "no such loop"]),
        (Hints({"L1": -1}), ["L1=-1", "0 or more"]),
        (Hints(taken={"4": 1.5}), ["1.5", "between 0 and 1"]),
        (Hints(taken={"400": 0.5}), ["400", "no such line"]),
        (Hints(access={"5": "sideways"}), ["sideways", "coalesced, random, uniform"]),
        (Hints(access={"1": "random"}), ["1", "memory access"]),
    ],
)
def test_what_does_not_fit_the_kernel_is_refused(hints: Hints, words: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        follow(WHILE, hints=hints)
    for word in words:
        assert word in str(caught.value)


def test_loops_are_named_in_address_order_and_nested_ones_say_in_what() -> None:
    source = """
__global__ void nest(float* x, int n) {
#pragma unroll 1
  for (int a = 0; a < n; ++a) {
#pragma unroll 1
    for (int b = 0; b < a; ++b) x[a * 32 + b] += 1;
#pragma unroll 1
    for (int c = 0; c < 7; ++c) x[a * 64 + c] -= 1;
  }
}
"""
    loops = list_loops(compiled(source))
    assert [item.name for item in loops] == ["L1", "L2", "L3"]
    assert [item.parent for item in loops] == ["", "L1", "L1"]
    assert [item.line for item in loops] == [4, 6, 8]
    found = static_profile(compiled(source), trips={"L1": 10}).report.loops
    assert loop(found, "L1").known == "given"
    # a counts 0 to 9 and is known although n is not, so that the inner loops' iterations are derived.
    assert loop(found, "L2").known == "derived"
    assert (loop(found, "L2").fewest, loop(found, "L2").most) == (1, 9)
    assert loop(found, "L3").trips == 7
