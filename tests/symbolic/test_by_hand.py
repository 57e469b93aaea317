"""Trip counts, instructions, lanes, addresses and bytes of small kernels without data, all counted by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from drywarp.execution.symbolic import AccessReport, Hints, LoopReport, StaticProfile, assume_launch, static_profile
from drywarp.execution.symbolic.amd.architecture import wide_loads as amd_loads
from drywarp.execution.symbolic.amd.operands import place_of
from drywarp.execution.symbolic.nvidia.decoder import StaticBanks
from drywarp.execution.symbolic.nvidia.needed import wide_loads as nvidia_loads
from drywarp.execution.symbolic.parameters import INTEGER, POINTER
from drywarp.execution.symbolic.state import DATA
from drywarp.kernel.kernel import Kernel, Parameter, Resources
from drywarp.kernel.launch.launch import Buffer, Scalar
from drywarp.memory.behaviour import MemoryBehaviour, analyse_memory
from tests.amd.kernels import kernel_of
from tests.listing import code
from tests.memory.profiles import geometry
from tests.symbolic.kernels import compiled, follow

TRIANGLE = """
__global__ void sums(const float* x, double* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float s = 0;
#pragma unroll 1
  for (int a = 0; a < n; ++a) {
#pragma unroll 1
    for (int b = a; b < n; b += 2)
      s += x[i + b * 1024];
    __syncthreads();
  }
  y[i] = s;
}
"""
STRIDED = """
__global__ void turns(const float* x, float* y, int n) {
  float s = 0;
#pragma unroll 1
  for (int b = threadIdx.x; b < n; b += 16)
    s += x[b];
  y[blockIdx.x * blockDim.x + threadIdx.x] = s;
}
"""
GUARD = """
__global__ void guard(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    y[i * 2] = x[i + 1];
}
"""
TILE = """
__global__ void tile(const int4* x, int* y, int* z) {
  __shared__ int t[32][32];
  int i = threadIdx.x;
  t[i][blockIdx.x & 1] = x[blockIdx.x * 32 + i].y;
  __syncthreads();
  y[i * 8] = t[0][i];
  atomicAdd(&z[i & 3], 1);
  y[4096 + i + blockIdx.y * 32] = t[i & 1][0];
}
"""
BACK = """
__global__ void back(float* x, int n, int step) {
#pragma unroll 1
  for (int k = n; k != 0; k -= step) x[k * 32 + threadIdx.x] += 1.0f;
#pragma unroll 1
  for (unsigned k = 1; k <= n; k *= 3) x[k * 64 + threadIdx.x] += 1.0f;
#pragma unroll 1
  for (int k = -5; k > -n; --k) x[n * 99 + k * 32 + threadIdx.x] += 1.0f;
#pragma unroll 1
  do { x[n + threadIdx.x] += 1.0f; n /= 2; } while (n > 1);
}
"""


def counts(found: StaticProfile, opcode: str) -> list[float]:
    """Executions of each instruction of an opcode over the grid, in the order of the code."""
    executed = found.profile.executions().tolist()
    return [n for i, n in zip(found.profile.kernel.instructions, executed, strict=True) if i.opcode == opcode]


def lanes(found: StaticProfile, opcode: str) -> list[float]:
    """Threads that run each of them with a guard that holds, over the grid."""
    weights = np.array([block.weight for block in found.profile.blocks])
    held = (weights @ found.profile.thread_instructions).tolist()
    return [n for i, n in zip(found.profile.kernel.instructions, held, strict=True) if i.opcode == opcode]


def memory(found: StaticProfile, sms: int = 4) -> MemoryBehaviour:
    return analyse_memory(found.profile, geometry(sms=sms))


def access(found: StaticProfile, opcode: str, number: int = 0) -> AccessReport:
    return [one for one in found.report.accesses if one.opcode.split(".")[0] == opcode][number]


def loops(found: StaticProfile) -> list[LoopReport]:
    return sorted(found.report.loops, key=lambda loop: loop.line)


def test_a_triangle_of_two_loops() -> None:
    found = follow(TRIANGLE, n=10)
    outer, inner = loops(found)
    # The inner loop takes ⌈(10 - a) / 2⌉ iterations: 5 5 4 4 3 3 2 2 1 1, 30 in all, 3 in the mean.
    assert (outer.trips, outer.fewest, outer.most, outer.known) == (10, 10, 10, "derived")
    assert (inner.trips, inner.fewest, inner.most, inner.known) == (3, 1, 5, "derived")
    assert (inner.parent, outer.parent) == (outer.name, "")
    assert (outer.line, inner.line) == (6, 8)
    # 4 blocks of 2 warps.
    assert counts(found, "LDG") == [8 * 30]
    assert counts(found, "BAR") == [8 * 10]
    assert counts(found, "STG") == [8]
    assert lanes(found, "LDG") == [256 * 30]
    load, store = access(found, "LDG"), access(found, "STG")
    assert store.coefficients == {"tid.x": 8, "ctaid.x": 512}
    assert (load.space, load.line, store.line) == ("global", 9, 12)
    seen = memory(found)
    # 4 sectors a load, 8 a store of 8 bytes a lane; 10 rows of 256 floats are read, and 256 doubles written.
    assert (seen.global_load_sectors, seen.global_store_sectors) == (8 * 30 * 4, 8 * 8)
    assert (seen.dram_read_bytes, seen.dram_write_bytes) == (10 * 256 * 4, 256 * 8)
    # A bound that nobody gave: 16 iterations, a bound of 16 for the inner loop too or as many iterations of it.
    assumed = loops(follow(TRIANGLE))
    assert {loop.known for loop in assumed} == {"assumed"}
    assert assumed[0].trips == 16
    # Stated trips go before what the code says: 4 iterations, whose inner loops take 5 5 4 4.
    stated = follow(TRIANGLE, n=10, hints=Hints({outer.name: 4}))
    assert counts(stated, "LDG") == [8 * 18]
    assert [(loop.trips, loop.known) for loop in loops(stated)] == [(4, "given"), (4.5, "derived")]


def test_addresses_by_thread_block_and_iteration() -> None:
    found = follow(TRIANGLE.replace("b = a;", "b = 0;").replace("b * 1024", "b * 1024 + a * 7"), n=10)
    outer, inner = loops(found)
    # 4 bytes a thread, 64 threads a block; a turn of the inner loop goes on by 2 rows of 1024, one of the outer by 7.
    load = access(found, "LDG")
    assert load.coefficients == {"tid.x": 4, "ctaid.x": 256, inner.name: 8192, outer.name: 28}
    assert (load.affine, load.known) == (True, "known")
    assert [(loop.trips, loop.fewest, loop.most) for loop in (outer, inner)] == [(10, 10, 10), (5, 5, 5)]
    assert counts(found, "LDG") == [8 * 50]


def test_lanes_that_leave_a_loop_one_after_the_other() -> None:
    found = follow(STRIDED, grid=(6, 1, 1), block=(32, 1, 1), n=40)
    (loop,) = found.report.loops
    # ⌈(40 - t) / 16⌉ iterations: 3 for 8 lanes, 2 for 16, 1 for 8; 64 of 32 lanes in 3 iterations of the warp.
    assert (loop.trips, loop.fewest, loop.most, loop.known) == (2, 1, 3, "derived")
    assert counts(found, "LDG") == [6 * 3]
    assert lanes(found, "LDG") == [6 * 64]
    assert lanes(found, "STG") == [6 * 32]
    # The iterations read 32, 24 and 8 floats from 0, 16 and 32 on: 128, 96 and 32 B; 40 floats in all.
    seen = memory(found)
    assert seen.global_load_sectors == 6 * (4 + 3 + 1)
    assert seen.dram_read_bytes == 160
    assert access(found, "LDG").coefficients == {"tid.x": 4, loop.name: 64}
    # 32 threads, none of which has anything to do.
    none = follow(STRIDED, grid=(6, 1, 1), block=(32, 1, 1), n=0)
    assert counts(none, "LDG") == [0]
    assert lanes(none, "STG") == [6 * 32]


@pytest.mark.parametrize(("n", "loaded", "stored"), [(40, 5 + 2, 8 + 2), (64, 5 + 5, 8 + 8), (1, 1, 1)])
def test_a_guard_lets_those_pass_that_it_lets_pass(n: int, loaded: int, stored: int) -> None:
    """Floats from the second on: 5 sectors for a full warp, 2 for its first 8 lanes. Every second one is stored."""
    found = follow(GUARD, grid=(4, 1, 1), block=(64, 1, 1), n=n)
    assert lanes(found, "STG") == lanes(found, "LDG") == [n]
    seen = memory(found)
    assert (seen.global_load_sectors, seen.global_store_sectors) == (loaded, stored)


def test_blocks_that_are_not_whole_warps() -> None:
    found = follow(GUARD, grid=(5, 1, 1), block=(40, 1, 1), n=1000)
    # 5 blocks of a full warp and one of 8 lanes.
    assert counts(found, "STG") == [10]
    assert lanes(found, "STG") == [5 * 40]
    assert access(found, "LDG").coefficients == {"tid.x": 4, "ctaid.x": 160}
    assert access(found, "STG").coefficients == {"tid.x": 8, "ctaid.x": 320}


def test_shared_memory_atomics_and_wide_loads() -> None:
    found = follow(TILE, grid=(4, 3, 1), block=(32, 1, 1))
    seen = memory(found)
    code = found.profile.kernel.instructions
    by_opcode = {code[index].opcode: one for index, one in seen.accesses.items()}
    # A column of the tile: 32 passes. A row: one; and two words of it for the other load: a bank, two words: 2.
    assert by_opcode["STS"].units == 32
    assert sorted(one.units for index, one in seen.accesses.items() if code[index].opcode == "LDS") == [1, 2]
    assert seen.shared_wavefronts == 12 * (32 + 1 + 2)
    # One word of 16 bytes a lane: 512 B of which each lane has 4: 16 sectors.
    assert seen.global_load_sectors == 12 * 16
    # Stores: a float of each sector, and 32 consecutive ones.
    assert seen.global_store_sectors == 12 * (32 + 4)
    assert access(found, "LDG").coefficients == {"tid.x": 16, "ctaid.x": 512}
    stores = [one.coefficients for one in found.report.accesses if one.opcode.startswith("STG")]
    assert {tuple(sorted(one.items())) for one in stores} == {(("tid.x", 32),), (("ctaid.y", 128), ("tid.x", 4))}
    atomics = [one for opcode, one in by_opcode.items() if opcode.startswith("RED")]
    assert [(one.executions, one.units) for one in atomics] == [(12, 1)]
    assert counts(found, "BAR") == [12]


def test_what_a_wide_load_brings_on_nvidia() -> None:
    """A long integer is shifted as a whole, an address is loaded from; a double is neither."""
    load = "LDG.E.64 R4, [R2.64]"
    for use, kind in (
        ("SHF.R.S64 R6, R4, 0x2, R5", INTEGER),
        ("SHF.R.U64 R6, R4, 0x2, R5", INTEGER),
        ("SHF.R.U32.HI R6, RZ, 0x2, R4", None),
        ("LDG.E R6, [R4.64]", POINTER),
        ("DADD R6, R4, R8", None),
    ):
        assert nvidia_loads(code(load, use)).get(0) == kind, use


def test_what_a_wide_load_brings_on_amd() -> None:
    """A pair of scalars behind the vector part of an address is its base; one of vectors there is data to store."""
    for load, use, kind in (
        ("s_load_dwordx2 s[4:5], s[0:1], 0x0", "global_load_dword v1, v0, s[4:5]", POINTER),
        ("global_load_dwordx2 v[2:3], v0, s[0:1]", "global_load_dword v1, v[2:3], off", POINTER),
        ("global_load_dwordx2 v[2:3], v0, s[0:1]", "global_store_dwordx2 v0, v[2:3], s[0:1]", None),
        ("global_load_dwordx2 v[2:3], v0, s[0:1]", "v_lshlrev_b64 v[2:3], 2, v[2:3]", INTEGER),
    ):
        assert amd_loads(kernel_of(f"{load}\n{use}").instructions).get(0) == kind, use


def test_amds_special_registers_lie_beside_each_other() -> None:
    words = {"s": 102, "flat_scratch": 2, "xnack_mask": 2, "vcc": 2, "ttmp": 16, "m0": 1, "exec": 2, "vccz": 1,
             "execz": 1, "scc": 1}  # fmt: skip
    places = [place_of(name, word) for name, count in words.items() for word in range(count)]
    assert len(set(places)) == len(places)
    assert place_of("s", 101) < place_of("vcc", 0) < place_of("vcc", 1) < place_of("exec", 0)


def test_constants_are_known_as_far_as_they_are_given() -> None:
    """Two words of a table of four are given; a number fills its variable."""
    kernel = compiled("__constant__ int table[4]; __constant__ double wide;\n__global__ void k(double* x) {"
                      " x[threadIdx.x] = table[threadIdx.x & 3] + wide; }")  # fmt: skip
    constants = {"table": Buffer("i32", (2,), "ones"), "wide": Scalar(np.float64(2).tobytes(), "2")}
    given = assume_launch(kernel, grid=(1, 1, 1), block=(32, 1, 1))
    given = replace(given, launch=replace(given.launch, constants=constants))
    banks = StaticBanks(kernel, given)
    table, wide = kernel.symbols["table"].offset, kernel.symbols["wide"].offset
    assert [banks.flags(3, table + 4 * word, 4) for word in range(4)] == [0, 0, DATA, DATA]
    assert banks.flags(3, wide, 8) == 0


def test_loops_that_count_down_multiply_divide_and_run_at_least_once() -> None:
    found = follow(BACK, grid=(1, 1, 1), block=(32, 1, 1), n=12, step=4)
    down, times, negative, halves = loops(found)
    # 12 8 4; 1 3 9; -5 … -11; 12 6 3.
    assert [loop.trips for loop in (down, times, negative, halves)] == [3, 3, 7, 3]
    assert {loop.known for loop in found.report.loops} == {"derived"}
    assert counts(found, "STG") == [3, 3, 7, 3]
    # Just at the edges: 27 is reached by 27 and more; -5 > -6 holds once; 2 / 2 = 1 ends after one iteration.
    for n, step, trips in (
        (27, 9, [3, 4, 22, 4]),
        (26, 13, [2, 3, 21, 4]),
        (6, 6, [1, 2, 1, 2]),
        (2, 1, [2, 1, None, 1]),
    ):
        seen = loops(follow(BACK, grid=(1, 1, 1), block=(32, 1, 1), n=n, step=step))
        assert [loop.trips for loop in seen] == trips


def test_addresses_in_three_dimensions() -> None:
    source = """
__global__ void volume(const float* x, float* y) {
  int i = threadIdx.x + 8 * threadIdx.y + 32 * threadIdx.z;
  y[i + 64 * (blockIdx.x + 2 * blockIdx.y + 6 * blockIdx.z)] = x[threadIdx.y * 100 - threadIdx.z * 1000 + 5000];
}
"""
    found = follow(source, grid=(2, 3, 2), block=(8, 4, 2))
    store, load = access(found, "STG"), access(found, "LDG")
    assert store.coefficients == {
        "tid.x": 4, "tid.y": 32, "tid.z": 128, "ctaid.x": 256, "ctaid.y": 512, "ctaid.z": 1536,
    }  # fmt: skip
    assert load.coefficients == {"tid.y": 400, "tid.z": -4000}
    # 12 blocks of 2 warps, each 32 floats side by side; a warp reads 4 floats of as many sectors.
    seen = memory(found)
    assert (seen.global_store_sectors, seen.global_load_sectors) == (24 * 4, 24 * 4)
    assert seen.dram_write_bytes == 12 * 64 * 4


def test_the_first_thread_that_comes_need_not_be_the_first_of_all() -> None:
    source = """
__global__ void late(float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x >= n) y[i * 3] = 1;
}
"""
    found = follow(source, n=40)
    assert access(found, "STG").coefficients == {"tid.x": 12, "ctaid.x": 768}
    # 24 of 64 threads in each of 4 blocks: the warp of the others does not come.
    assert (lanes(found, "STG"), counts(found, "STG")) == ([96], [4])


def test_addresses_that_follow_no_line() -> None:
    source = """
__global__ void squares(const int* key, float* y) {
  int i = threadIdx.x;
  y[i * i] = 1;
  y[key[i]] = 2;
}
"""
    found = follow(source, grid=(1, 1, 1), block=(32, 1, 1))
    square, gather = access(found, "STG"), access(found, "STG", 1)
    assert (square.affine, square.known, dict(square.coefficients)) == (False, "known", {})
    assert gather.known == "data"
    # Squares of 0 to 31 in floats: sectors of 8, all that any i² / 8 names.
    by_line = {one.pc: one for one in found.report.accesses}
    index = next(n for n, i in enumerate(found.profile.kernel.instructions) if i.pc == square.pc)
    assert by_line[square.pc] is square
    assert memory(found).accesses[index].units == len({i * i // 8 for i in range(32)})


def test_what_stands_for_arguments_that_nobody_gave() -> None:
    source = """
__global__ void kinds(bool b, short s, unsigned char c, int n, long long l, float f, double d, float* x) {
  x[threadIdx.x] = b + s + c + n + l + f + d;
}
"""
    said = {a.what.split()[-1]: a.assumed for a in follow(source).report.assumptions if "argument" in a.what}
    # Whole numbers are alike in all sizes that hold them; a byte is 1, so that it is true.
    assert said["n"] == said["s"] == said["l"] != "1"
    assert (said["b"], said["c"], said["f"], said["d"]) == ("1", "1", "1", "1")
    assert "large enough" in said["x"]
    assert int(said["n"]) > 100


def test_a_uniform_compare_of_numbers_that_nobody_gave() -> None:
    """All lanes of a warp share the predicate; what is assumed of it is one value for the warp."""
    instructions = code(
        "ULDC UR4, c[0x0][0x160]", "ULDC UR5, c[0x0][0x164]", "UISETP.LT.U32.AND UP0, UPT, UR4, UR5, UPT",
        "USEL UR4, UR4, UR5, !UP0", "ISETP.GT.AND P0, PT, UR4, 0xf, PT", "@P0 BRA `(.L_x_0)", "IADD3 R1, R1, 0x1, RZ",
        ".L_x_0:", "EXIT",
    )  # fmt: skip
    parameters = (Parameter(0, 0, 4, "a", "int"), Parameter(1, 4, 4, "b", "int"))
    kernel = Kernel("k", "k", "sm_80", instructions, parameters, 0x160, Resources(32, 0))
    found = static_profile(kernel, assume_launch(kernel, grid=(4, 1, 1), block=(64, 1, 1), arguments={}))
    # A number that was not given is larger than 15: the branch is taken.
    assert found.profile.executions().tolist() == [8.0] * 6 + [0.0, 8.0]


def test_tables_of_constants_are_read_at_one_address() -> None:
    source = """__constant__ float table[1024];
__global__ void f(float* y) {
  y[threadIdx.x] = table[(threadIdx.x * 7) & 1023] + table[blockIdx.x & 1023];
}"""
    found = [a.assumed for a in follow(source).report.assumptions if a.what == "indices of constants"]
    kept = "so few different ones that the cache keeps them"
    assert sorted(found) == [kept, f"the same for all lanes of a warp, {kept}"]
    plain = "__global__ void f(float* y, int n) { y[threadIdx.x] = n; }"
    assert not [a for a in follow(plain).report.assumptions if a.what == "indices of constants"]
