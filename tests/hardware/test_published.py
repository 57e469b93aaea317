"""GPU files against what their sources print, in the sources' own units.

`products.csv` is a datasheet a row: clocks, cores, the memory's clock and width. `published.csv` is a figure a row, as
a paper, a guide or a micro-benchmark prints it: results per clock, cycles at a clock, GB/s of a whole GPU. The tests
work the files' numbers out from them. A number that no source prints in other words is named in `no_second_source.csv`,
and why; nothing else may be left out.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from drywarp.hardware import Gpu
from drywarp.hardware.load import resolve
from drywarp.hardware.toml_file import DATA

from .compiled_distances import distances
from .gpus import GPUS

HERE = Path(__file__).parent
PEAK = "memory.dram.peak_gbs"


def table(name: str) -> list[dict[str, str]]:
    with (HERE / name).open(newline="", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


PRODUCTS = {row["gpu"]: row for row in table("products.csv")}
FIGURES = table("published.csv")


def number(gpu: Gpu, key: str) -> float:
    value = gpu.fact(key).value
    assert isinstance(value, int | float)
    return float(value)


def copies(gpu: Gpu, key: str) -> int:
    """How many of a class's subsystem an SM has."""
    scope = gpu.subsystems[gpu.classes[key.split(".")[1]].subsystem].scope
    return int(gpu.scheduler.partitions) if scope == "partition" else 1


def scaled(gpu: Gpu, of: str, printed: float, ours: dict[str, float]) -> float:
    """A figure of another card, on ours: in proportion to `ours` and what `of` says of that card."""
    if not of:
        return printed
    for unit, own in ours.items():
        if unit in of:
            return printed * own / float(of.replace(unit, "").split()[0])
    raise AssertionError(of)


def expected(gpu: Gpu, row: dict[str, str]) -> float:
    """What the file should say, in the file's unit, by what the source prints."""
    key, unit = row["key"], row["unit"]
    if unit == "as":
        return number(gpu, row["printed"])
    printed = float(row["printed"])
    hertz = float(row["mhz"] or gpu.device.boost_clock_mhz) * 1e6
    sms = gpu.device.sm_count
    match unit:
        case "results/clk/SM":  # a warp instruction gives 32
            return copies(gpu, key) * 32 / printed
        case "packed results/clk/SM":  # and one of packed halves 64
            return copies(gpu, key) * 64 / printed
        case "TFLOPS":  # a multiply-add is two; four tensor cores an SM
            return printed * 1e12 / (2 * 4 * sms * hertz)
        case "op/clk/SM":
            return printed / (2 * 4)
        case "cycles" if key.endswith("_ns"):
            return printed / hertz * 1e9
        case "lanes/clk/SIMD":  # of a wavefront's 64
            return 64 / printed
        case "passes":  # of a wavefront over a SIMD's 16 lanes
            return printed * 64 / 16
        case "B/clk/CU" if key.startswith("classes."):  # a wavefront's dwords
            return 64 * 4 / printed
        case "instructions/4 clk/SIMD":
            return printed / 4
        case "B/clk/CU of 64 B":  # lines
            return printed / 64
        case "instructions/clk" if key.startswith("classes."):
            return 1 / printed
        case "FMA/instruction" | "sectors" | "sectors/clk":
            return printed / float(row["of"].split()[0])
        case "lanes/clk/SM":
            return printed * 4
        case "bits":
            return printed / 8
        case "us":
            return printed * 1000
        case "KiB":
            return printed * 2**10
        case "MiB":
            return printed * 2**20
        case "MHz":
            return scaled(gpu, row["of"].removeprefix("boost "), printed, {"MHz": gpu.device.boost_clock_mhz})
        case "GB/s of one set":
            # Blocks at any place of the same data, 512 KiB each, at a rate that larger data do not have.
            kib, base, blocks = (float(word) for word in row["of"].split()[::2])
            alone = base * 1e9 / hertz / (kib * 2**10)
            return (1 - base / printed) / alone / (1 - kib / 512 / blocks)
        case "GB/s" if key.endswith("bytes_per_cycle"):
            # Of all SMs together; or of twelve memory channels of 32 bits, of which ours has as many as its bus has.
            channels = float(PRODUCTS[gpu.name]["bus_bits"]) / 32
            ours = {"SMs": 1, "CUs": gpu.device.sm_count, "channels": channels}
            whole = scaled(gpu, row["of"], printed, ours)
            return whole * 1e9 / hertz
        case "GB/s":
            read = number(gpu, "memory.dram.read_gbs")
            peaks = {"GB/s": number(gpu, PEAK)}
            if row["of"].startswith("reading "):
                return scaled(gpu, row["of"].removeprefix("reading "), printed, {"GB/s": read})
            if row["of"].startswith("writing "):
                write = number(gpu, "memory.dram.write_gbs")
                return scaled(gpu, row["of"].removeprefix("writing "), printed, {"GB/s": write})
            return scaled(gpu, row["of"], printed, peaks)
    return printed


TOLERANCES = {
    # Results per clock are measured a little below the lanes that give them (15.5 on 16), TFLOPS at a clock near boost.
    "results/clk/SM": 0.04, "packed results/clk/SM": 0, "op/clk/SM": 0.03, "TFLOPS": 0.02,
    # The files round to four digits or to a tenth, measured cycles of an instruction to whole ones (4.44 to 4).
    "cycles": 0.004, "GB/s": 0.006, "MHz": 0.001, "sectors": 0.003,
    # Rates of one set of data scatter by 1 %, which is a tenth of what sharing adds; an empty kernel, by other means.
    "GB/s of one set": 0.12, "us": 0.03,
}  # fmt: skip
"""What is printed in other units is exact."""
WHOLE_CYCLES = 0.5


@pytest.mark.parametrize("row", FIGURES, ids=lambda row: f"{row['key']}-{row['gpus'].split()[0]}")
def test_what_a_source_prints(row: dict[str, str]) -> None:
    for name in row["gpus"].split():
        gpu = GPUS[name]
        of_a_class = row["unit"] == "cycles" and row["key"].startswith("classes.")
        wanted = expected(gpu, row)
        allowed: dict[str, Any] = {"rel": TOLERANCES.get(row["unit"], 0)}
        if of_a_class and number(gpu, row["key"]).is_integer():
            allowed = {"abs": WHOLE_CYCLES if not wanted.is_integer() else 0}
        assert number(gpu, row["key"]) == pytest.approx(wanted, **allowed), (name, row)


@pytest.mark.parametrize("name", GPUS)
def test_a_datasheet(name: str) -> None:
    """SMs by cores, both clocks, the bandwidth of the memory's pins, the sizes of L2 and memory, the board's power."""
    gpu, printed = GPUS[name], PRODUCTS[name]
    sheet = {key: float(text or 0) for key, text in printed.items() if key != "gpu"}
    device = gpu.device
    lanes = 32 / gpu.classes["fp32"].lambda_ * gpu.scheduler.partitions * (2 if gpu.is_amd else 1)
    assert device.sm_count == sheet["sms"]
    assert device.sm_count * lanes == sheet["fp32_cores"]
    assert (device.base_clock_mhz, device.boost_clock_mhz) == (sheet["base_mhz"], sheet["boost_mhz"])
    assert gpu.memory.l2.bytes == sheet["l2_mib"] * 2**20
    assert device.tdp_w == sheet["tdp_w"]
    assert gpu.memory.dram.bytes == sheet["memory_gb"] * 2**30
    pins = sheet["memory_mhz"] * sheet["transfers_per_clock"] * sheet["bus_bits"] / 8 / 1000
    # Vendors round down: 4.8 TB/s of H200's 4.89, 8 TB/s of B200's 8.19, GB200's and B300's; others to the last digit.
    assert number(gpu, PEAK) == pytest.approx(pins, rel=0.025 if name in ("h200", "b200", "gb200", "b300") else 0.005)
    assert number(gpu, PEAK) == pytest.approx(sheet["vendor_gbs"], rel=5e-4)
    for class_ in ("fp32", "fp64"):
        tflops = printed[f"{class_}_tflops"]
        if tflops:  # a lane's multiply-add is two operations
            warps = gpu.scheduler.partitions / gpu.classes[class_].lambda_
            threads = 64 if gpu.is_amd else 32
            flops = 2 * warps * threads * device.sm_count * device.boost_clock_mhz * 1e6
            last_digit = 10.0 ** -len(tflops.partition(".")[2])
            if gpu.fact(f"classes.{class_}.lambda").source == "gb202":  # a measured rate, which stays below the peak
                flops *= 2 / 1.69
            assert flops * 1e-12 == pytest.approx(float(tflops), abs=0.6 * last_digit)


NVIDIA = [name for name in GPUS if not name.startswith("mi")]

# GPU, and classes whose Λ the compiler's schedule shows. It keeps some on some chips farther apart, or knows of
# forwarding: int on 12.0, vote on 9.0 and 10.0, fp16 on 10.0.
COMPILED = {
    "v100": "int shift fp32 fp32_compare fp16 branch",
    "t4": "int shift imad fp32 fp32_compare fp16 vote branch",
    "a100": "int shift imad fp32 fp32_compare fp16 vote branch",
    "a6000": "int shift imad fp32 fp32_compare fp16 vote branch",
    "l4": "int shift imad fp32 fp32_compare fp16 vote branch",
    "h100": "int shift imad fp32 fp32_compare fp16 branch",
    "b200": "int shift imad fp32 fp32_compare uniform branch",
    "b300": "int shift imad fp32 fp32_compare fp16 uniform branch",
    "orin": "int shift imad fp32 fp32_compare fp16 vote branch",
    "rtx5090": "shift imad fp32 fp32_compare fp16 uniform vote branch",
}


@pytest.mark.parametrize("name", COMPILED)
def test_fixed_latencies_are_those_the_compiler_keeps(name: str) -> None:
    gpu = GPUS[name]
    kept = distances(gpu.arch)
    for class_ in COMPILED[name].split():
        assert gpu.classes[class_].latency == kept[class_], (name, class_)


WAVEFRONT = 128
"""Bytes that one pass of the L1 data path serves."""
WHOLE_WARP = ("v100", "titanv", "a100", "a30", "h100", "h200", "gh200", "b200", "b300", "gb200")
"""GPUs whose load-store unit takes a whole warp a cycle."""
TURING = ("t4", "rtx20", "rtx6000-turing", "gtx16")


@pytest.mark.parametrize("name", NVIDIA)
def test_a_wavefront_takes_the_whole_cycles_that_l1_needs_for_it(name: str) -> None:
    """Where the load-store unit takes half a warp a cycle, loads of 4 bytes reach half of what Ampere's L1 gives."""
    gpu = GPUS[name]
    of_l1 = round(WAVEFRONT / gpu.memory.l1.bytes_per_cycle)
    assert gpu.classes["global_load"].lambda_ == (of_l1 if name.startswith(WHOLE_WARP) else 2)
    assert of_l1 == (2 if name.startswith(TURING) else 1)
    # By the copy engine, 836 GB/s into four SMs of an H100 at 1980 MHz: 106 bytes a cycle.
    assert gpu.classes["bulk_copy"].lambda_ == round(WAVEFRONT / (836e9 / 4 / 1980e6))


@pytest.mark.parametrize("name", NVIDIA)
def test_the_tensor_class_is_the_largest_fp16_shape_at_its_rate(name: str) -> None:
    """m16n8k16, of k 8 on Volta and Turing, at what [tensor] says that a partition multiplies and adds in a cycle."""
    gpu = GPUS[name]
    k = 8 if gpu.arch == "sm_75" else 16
    assert gpu.classes["tensor"].lambda_ == 16 * 8 * k / number(gpu, "tensor.fp16")


STARTS = {"rtx3090": 1.09, "a100": 1.34, "h100": 1.26, "l40s": 0.93}
"""The smallest time for each kernel of a graph, in microseconds: A40, A100, H200 and L40 (gpu-benches)."""


@pytest.mark.parametrize("name", STARTS)
def test_a_kernel_starts_as_on_an_rtx_3080_by_the_ratio_of_small_kernels(name: str) -> None:
    """Kernels of one thread take 2016 to 2112 ns there under Nsight Compute, some 20 of them in their thread."""
    start = GPUS[name].device.kernel_start_ns
    assert start is not None
    assert 2016 - 20 <= start * STARTS["rtx3090"] / STARTS[name] <= 2112 - 20


def test_a_product_of_a_warp_group() -> None:
    """An H100 takes 79 cycles for an m64n64k16 of bf16 (flash-vla): the product, Λ, and 8 of the loop round it."""
    gpu = GPUS["h100"]
    product = 64 * 64 * 16 / (4 * number(gpu, "tensor.bf16"))
    assert product + 8 + gpu.classes["wgmma"].latency == pytest.approx(79, abs=2)
    assert GPUS["a100"].classes["wgmma"].latency == gpu.classes["wgmma"].latency


def test_what_orders_warps_on_an_h100() -> None:
    """FlashGPU-Sim: 111 cycles for a token among three warp groups; 48 and 66 for fences behind 8 and 16 stores."""
    gpu = GPUS["h100"]
    arrive, more = gpu.classes["barrier"].lambda_, (66 - 48) / 8
    assert 3 * (number(gpu, "classes.barrier.latency") + 4 * arrive) == pytest.approx(111, abs=4)
    assert number(gpu, "classes.fence.block_latency") == pytest.approx(48 - 7 * more, abs=0.5)
    # A result of 16 x 8 takes four cycles of 512 multiply-adds, and is four registers.
    assert number(gpu, "scheduler.product_registers") == 16 * 8 / 32 / (16 * 8 * 16 / number(gpu, "tensor.fp16"))
    assert number(gpu, "scheduler.product_registers") / 2 == 512 / 1024


def test_a_product_in_tensor_memory() -> None:
    """A B200 takes 138 cycles from one m128n256k16 to the next that adds to its result, 74 with n128 (UTCMMA notes)."""
    gpu = GPUS["b200"]
    for columns, cycles in ((256, 138), (128, 74)):
        busy = 128 * columns * 16 / (4 * number(gpu, "tensor.fp16"))
        assert busy + number(gpu, "classes.tcgen05.latency") == cycles


def test_tensor_memory_delivers_what_a_b300_was_measured_to() -> None:
    """65 TB/s over 148 SMs at 2032 MHz: a warp of each partition reads 32 lanes of 4 bytes in λ (B300 notes)."""
    bytes_per_second = 4 * 32 * 4 / number(GPUS["b200"], "classes.tensor_load.lambda") * 148 * 2.032e9
    assert bytes_per_second == pytest.approx(65e12, rel=0.06)


def test_every_gpu_has_a_datasheet_a_bandwidth_and_a_latency_here() -> None:
    assert set(PRODUCTS) == set(GPUS)
    for name in GPUS:
        keys = {row["key"] for row in FIGURES if name in row["gpus"].split()}
        assert {"memory.dram.read_gbs", "memory.dram.latency_ns", "memory.l2.near_latency_ns"} <= keys, name


OF_THE_DATASHEET = {
    "device.sm_count", "device.base_clock_mhz", "device.boost_clock_mhz", "device.tdp_w", "memory.l2.bytes",
    "memory.dram.bytes", PEAK,
}  # fmt: skip


def test_no_number_is_left_without_a_check() -> None:
    """What a chip or a product says stands in a table here, or among what has no second source."""
    checked = {(name, row["key"]) for row in FIGURES for name in row["gpus"].split()}
    checked |= {(name, f"classes.{class_}.latency") for name in COMPILED for class_ in COMPILED[name].split()}
    checked |= {(name, f"classes.{c}.lambda") for name in NVIDIA for c in ("global_load", "bulk_copy", "tensor")}
    checked |= {(name, "classes.wgmma.latency") for name in ("a100", "h100")}
    checked |= {("b200", key) for key in ("classes.tcgen05.latency", "classes.tensor_load.lambda")}
    checked |= {(name, "device.kernel_start_ns") for name in STARTS}
    seen = {(GPUS[name].fact(key).file, key) for name, key in checked}
    excused = {(row["file"], row["key"]) for row in table("no_second_source.csv")}
    said = {
        (fact.file, key)
        for gpu in GPUS.values()
        for key, fact in gpu.facts()
        if isinstance(fact.value, int | float)
        and not isinstance(fact.value, bool)
        and not key.startswith("occupancy.")  # NVIDIA's table, test_capabilities.py
        and key not in OF_THE_DATASHEET
        and key != "parameters.sync_gamma"  # tests/calibration/test_model_card.py
    }
    assert said - seen - excused == set()
    assert excused - (said - seen) == set(), "these are checked, or are gone"


CHIPS = {"7.5": "tu10x", "8.6": "ga10x", "8.9": "ad10x", "12.0": "gb20x"}
"""The chips of which GeForce cards have half of the tensor cores' rates, by compute capability."""
HALVED = [name for name in GPUS if name.startswith("rtx") and name != "rtx6000-ada"]


@pytest.mark.parametrize("name", [*HALVED, "a10g"])
def test_geforce_cards_halve_what_is_accumulated_in_fp32(name: str) -> None:
    """Where a card states a rate of its own, it is half of its chip's. Integers are halved on A10G alone."""
    chip = CHIPS[GPUS[name].compute_capability]
    facts = resolve(f"arch/{chip}", DATA / "arch" / f"{chip}.toml").facts
    own = {key for key, fact in GPUS[name].facts() if key.startswith("tensor.") and fact.file == name}
    assert "tensor.fp16" in own
    assert ("tensor.int8" in own) == (name == "a10g")
    for key in own:
        value = facts[key].value
        assert isinstance(value, int | float)
        assert number(GPUS[name], key) == value / 2, key


def test_the_tensor_class_of_a_chip_is_that_of_its_own_rate() -> None:
    """Products restate both; m16n8k16 at what the chip's file says."""
    chip = resolve("arch/gb20x", DATA / "arch" / "gb20x.toml").facts
    value, rate = chip["classes.tensor.lambda"].value, chip["tensor.fp16"].value
    assert isinstance(value, int | float)
    assert isinstance(rate, int | float)
    assert value * rate == 16 * 8 * 16


def test_a_compute_unit_of_amd() -> None:
    """LLVM and AMD's specifications: 4 SIMDs of 8 waves, 512 KiB of registers in steps of 8, 64 KiB of LDS.

    A group of one wave takes a slot; of larger ones the barriers allow 16. A SIMD has 800 scalar registers, allocated
    in blocks of 16. A dispatch packet has 32 bits for each extent of the grid.
    """
    for name in (name for name, gpu in GPUS.items() if gpu.is_amd):
        has = GPUS[name].occupancy
        assert has.max_warps_per_sm == 4 * 8
        assert has.warp_allocation_granularity == 4
        assert has.max_threads_per_sm == has.max_warps_per_sm * 64
        assert has.registers_per_sm == has.max_registers_per_block == 512 * 1024 / 4
        # A wave has 512 registers at most, of which 256 accumulate, and so there is room for one of 512 in each SIMD.
        assert has.registers_per_sm / 4 / 64 == has.max_registers_per_thread == 256 + 256
        assert has.register_allocation_unit == 8 * 64
        assert has.shared_bytes_per_sm == has.shared_bytes_per_block_default == has.shared_bytes_per_block_optin
        assert has.shared_bytes_per_sm == 64 * 1024 == has.carveout_bytes[-1]
        assert (has.max_threads_per_block, has.shared_allocation_unit) == (1024, 4 * 128)
        assert (has.max_blocks_per_sm, has.max_multiwarp_blocks_per_sm) == (has.max_warps_per_sm, 16)
        assert (has.scalar_registers_per_partition, has.scalar_register_unit) == (800, 16)
        assert has.max_grid_extent == (2**32 - 1,) * 3
        assert has.max_block_extent == (has.max_threads_per_block,) * 3
        assert has.warp_check_granularity == 1
