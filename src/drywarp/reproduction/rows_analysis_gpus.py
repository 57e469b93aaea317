"""The analysis paper's §4.3: Table 6 from Table 5, the ratios of λ in the text, and Theorem 1 on the example.

Throughput = N · |ω| · 4 / λ_RAM · f, with N compute units, |ω| threads a warp, four bytes each. The paper
prints neither N nor f; the GPU files give them with their sources. Those of Kepler and Tonga are compared at
the vendor's clock, since the files' clock is derived from the number itself.
"""

from __future__ import annotations

from ..hardware import load_gpu
from ..models.inputs import inputs_of
from ..models.transit import wpc_transit
from .kernels import example
from .row import Row, inconsistent, row

PAPER = "analysis"
VENDOR_GHZ = {"kepler": 0.928, "tonga": 0.970}
"""Clocks of the GeForce GTX 650 Ti and the Radeon R9 380 (TechPowerUp)."""
THREAD_BYTES = 4


def throughput_gbs(units: float, warp_size: float, lambda_ram: float, clock_ghz: float) -> float:
    """§4.3: N · |ω| · 4 / λ_RAM · f."""
    return units * warp_size * THREAD_BYTES / lambda_ram * clock_ghz


def gpu_rows() -> list[Row]:
    """Table 6, ratios, Theorem 1."""
    return [*_table_6(), *_ratios(), *_theorem_1()]


def _throughput(name: str) -> float:
    gpu = load_gpu(f"papers/analysis-{name}")
    clock = VENDOR_GHZ.get(name, gpu.parameter("clock_mhz") / 1000)
    return throughput_gbs(
        gpu.parameter("sm_count"), gpu.parameter("warp_size"), gpu.classes["ld_global_s32"].lambda_, clock
    )


def _bandwidth(name: str) -> float:
    return load_gpu(f"papers/analysis-{name}").parameter("memory_gbs")


def _table_6() -> list[Row]:
    place = "Table 6, from Table 5"
    found = []
    for name, printed, percent in (("fermi", "89.6", "62.2"), ("maxwell", "22.6", "77.8"), ("pascal", "160.6", "83.7")):
        gbs = _throughput(name)
        title = name.capitalize()
        found.append(row(PAPER, place, f"memory throughput of {title}, GB/s", printed, gbs))
        found.append(row(PAPER, place, f"efficiency of {title}, %", percent, 100 * gbs / _bandwidth(name)))
    kepler, turing, tonga = _throughput("kepler"), _throughput("turing"), _throughput("tonga")
    found += [
        inconsistent(PAPER, place, "memory throughput of Kepler, GB/s", "70.5", kepler,
                     f"4 SMs · 32 · 4 / 7.5 · 0.928 GHz (GTX 650 Ti) = {kepler:.1f}; no clock is printed, 1.033 GHz"
                     " would give 70.5"),
        inconsistent(PAPER, "Table 6", "efficiency of Kepler, %", "81.5",
                     100 * load_gpu("papers/analysis-kepler").parameter("memory_reached_gbs") / _bandwidth("kepler"),
                     "70.5 / 86.4 = 81.6 %"),
        inconsistent(PAPER, place, "memory throughput of Turing, GB/s", "288", turing,
                     f"36 SMs · 32 · 4 / 18 · 1.41 GHz = {turing:.0f}, which is printed as the bandwidth; 288 is not"
                     " the 80.5 % of 361 (79.8 %), nor is 361 the bandwidth of an RTX 2070 (448)"),
        inconsistent(PAPER, place, "efficiency of Turing, %", "80.5", 100 * turing / _bandwidth("turing"),
                     f"{turing:.1f} / 448 = 80.6 %; the printed 288 / 361 = 79.8 %"),
        inconsistent(PAPER, place, "memory throughput of Tonga, GB/s", "172", tonga,
                     f"28 units · 64 · 4 / 42 · 0.97 GHz (R9 380) = {tonga:.1f}; no clock is printed, 1.008 GHz would"
                     " give 172"),
    ]  # fmt: skip
    return found


def _ratios() -> list[Row]:
    """§4.3: λ_div,f32 / λ_mul,f32 and λ_mul,f64 / λ_mul,f32."""
    found = []
    divide = {"fermi": "3", "kepler": "3", "maxwell": "3", "pascal": "3", "turing": "3", "tonga": "2.25"}
    double = {"fermi": "2", "kepler": "16", "maxwell": "20", "pascal": "32", "turing": "38", "tonga": "8"}
    for quantity, above, printed in (("div,f32", "div_f32", divide), ("mul,f64", "mul_f64", double)):
        for name, value in printed.items():
            classes = load_gpu(f"papers/analysis-{name}").classes
            ratio = classes[above].lambda_ / classes["mul_f32"].lambda_
            found.append(row(PAPER, "§4.3", f"λ_{quantity} / λ_mul,f32 of {name.capitalize()}", value, ratio))
    return found


def _theorem_1() -> list[Row]:
    """Eqs. 13 and 14 on the example: Transit's crossing is ω / (Λ_mem α_mem + Λ_comp α_comp), below the roof."""
    inputs = inputs_of(example())
    comp, mem = inputs.computation, inputs.memory
    found = []
    for warps in (1, 5):
        crossing = wpc_transit(warps, comp.count, (comp.lambda_, comp.latency), mem.count, (mem.lambda_, mem.latency))
        volkov = warps / (mem.latency * mem.count + comp.latency * comp.count)
        found.append(
            row(PAPER, "§2.2.1, Theorem 1", f"WPC of Transit on the example, {warps} warps: Eq. 14", f"{volkov:.6f}",
                crossing, note="Volkov's model without ILP, Λ_app = 28")
        )  # fmt: skip
    return found
