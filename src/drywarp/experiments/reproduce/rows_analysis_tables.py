"""The analysis paper's Tables 10 to 12, whose averages follow from their cells; Theorem 1 and Eq. 40, evaluated.

The cells themselves are errors of models on Rodinia kernels whose code, inputs and run times the paper does not print:
they cannot be computed, their means can. Equations that the paper leaves without numbers are evaluated on its own
example and on the pairs of Fig. 6.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from ...models import get_model
from ...models.first_order import wpc_transit
from ...models.inputs import inputs_of
from ...support.folders import packaged_rows
from . import Value, Values
from .rows_analysis import PAIRS, PAPER
from .small_kernels import Cost, Instruction, example, kernel

DEVICES = {10: "Quadro K620", 11: "GTX 1060", 12: "RTX 2070"}
NEGLIGIBLE = 1 / 240
"""λ in cycles of the pairs of Fig. 6, whose λ_mem^instr Eq. 40 neglects: one tick of the simulation."""


@dataclass(frozen=True, slots=True)
class Column:
    """A model's column of a table: MAPE and MAPE^shape of each kernel, and the averages as printed."""

    model: str
    cells: tuple[tuple[float, float], ...]
    averages: tuple[str, str]


def columns(number: int) -> list[Column]:
    """The columns of Table 10, 11 or 12, in percent, under the names that are printed above them."""
    lines = [line for line in packaged_rows(Path(__file__).with_name("rodinia.csv")) if line["table"] == str(number)]
    found = []
    for model in list(lines[0])[2:]:
        pairs = [line[model].split("/") for line in lines]
        cells = tuple((float(error), float(shape)) for error, shape in pairs[:-1])
        found.append(Column(model, cells, (pairs[-1][0], pairs[-1][1])))
    return found


def computed() -> dict[str, Values]:
    """The averages, what the text says of them, the swapped columns, and the evaluated equations."""
    steps = sum(kernels * (most // group) for (group, most), kernels in RANGES.items())
    experiments: Values = {"experiments on each GPU": steps}
    return {PAPER: {**_averages(), **_text(), **experiments, **_theorem_1(), **_equation_40()}}


def _averages() -> Values:
    """Of each table; and of Table 12's columns WFG and MWP-CWP_corr, which carry each other's numbers."""
    found: Values = {}
    for at, measure in enumerate(("MAPE", "MAPE^shape")):
        for table, device in DEVICES.items():
            for column in columns(table):
                found[f"{device}: average {measure} of {column.model}, %"] = mean(cell[at] for cell in column.cells)
        for name, other in (("WFG", "mwp_cwp_corrected"), ("MWP-CWP_corr", "wfg")):
            exchanged = next(column for column in columns(12) if column.model == other)
            found[f"{DEVICES[12]}: average {measure} of {name}, %"] = mean(cell[at] for cell in exchanged.cells)
    return found


def _text() -> Values:
    """The abstract, §6.3 and §7 on the averages of all three tables."""
    average = {(table, column.model): float(column.averages[0]) for table in DEVICES for column in columns(table)}
    others = [value for (_, model), value in average.items() if model != "pipeline"]

    def over_devices(model: str) -> float:
        return mean(average[table, model] for table in DEVICES)

    return {
        "average MAPE of the Pipeline model over three GPUs, %": over_devices("pipeline"),
        "average MAPE of Volkov's model over three GPUs, %": over_devices("volkov"),
        "least average MAPE of another model, %": min(others),
        "largest average MAPE of another model, %": max(others),
    }


RANGES = {(2, 64): 2, (1, 32): 2, (8, 64): 7, (6, 60): 3}
"""Table 9: the occupancies of the kernels in warps, from one group up, and how many kernels have them."""


def _theorem_1() -> Values:
    """Eqs. 13 and 14 on the example: Transit's crossing is ω / (Λ_mem α_mem + Λ_comp α_comp), below the roof."""
    inputs = inputs_of(example())
    comp, mem = inputs.computation, inputs.memory
    parts = comp.count, (comp.lambda_, comp.latency), mem.count, (mem.lambda_, mem.latency)
    latency = mem.latency * mem.count + comp.latency * comp.count
    # k warps are at memory: WPC = k / (Λ_mem α_mem), Eq. 7. The printed Eqs. 9 and 10 are solved for k.
    warps, ci = 5, comp.count / mem.count
    at_memory = wpc_transit(warps, *parts) * mem.latency * mem.count
    eq_9 = warps / (1 + mem.latency * mem.count / (comp.latency * comp.count))
    double = 2 * comp.count
    doubled = wpc_transit(warps, double, parts[1], mem.count, parts[3]) * mem.latency * mem.count
    eq_10 = warps / comp.latency / (2 * ci / mem.latency + 1 / double)
    return {
        **{
            f"WPC of Transit on the example, {warps} warps: Eq. 14": Value(wpc_transit(warps, *parts), warps / latency)
            for warps in (1, 5)
        },
        "warps at memory of the example's 5": Value(at_memory, round(eq_9, 3)),
        "warps at memory of 5, with α_comp = 8": Value(doubled, round(eq_10, 3)),
    }


def eq_40(compute: float, memory: float, warps: float) -> float:
    """CPR = α_comp Λ_comp + Λ_mem ω − (ω − 1) α_comp Λ_comp / 2, in cycles; `compute` is α_comp Λ_comp."""
    return compute + memory * warps - (warps - 1) * compute / 2


def _equation_40() -> Values:
    """Eq. 40 on the three pairs of Fig. 6, compared with the WFG model, and Λ_exposed by Eq. 36."""
    found: Values = {}
    for number, (compute, memory) in PAIRS.items():
        costs = {"comp": Cost("comp", NEGLIGIBLE, compute), "mem": Cost("mem", NEGLIGIBLE, memory)}
        work = kernel(costs, [Instruction("comp"), Instruction("mem", (0,))], memory=("mem",))
        for warps in (1, 2, 4, 8):
            cycles = get_model("wfg").predict(work, [warps]).curve[0].cycles_per_run or 0.0
            hidden = memory - (warps - 1) * compute / 2 / warps
            value = Value(cycles, eq_40(compute, memory, warps), {"hidden": hidden})
            found[f"CPR of pair {number} in WFG, {warps} warps"] = value
    return found
