"""A page for each GPU: every number of its file with its kind and its source; and one of all their λ and Λ."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from drywarp.errors import UsageError
from drywarp.hardware import Fact, Gpu, gpu_names, load_gpu, own_names
from drywarp.hardware.fact import KINDS
from drywarp.models.cusp import PARTNERS, mix_of
from drywarp.models.needed_occupancy import Mix

from .escape import cell, inline, table
from .page import Page

_SECTIONS = {
    "device": "The product",
    "memory": "Memory",
    "occupancy": "What an SM has room for",
    "host": "The bus, and what calls cost the host",
    "scheduler": "Warp schedulers",
    "parameters": "Inputs of single models",
    "machine_code": "Machine code",
    "classes": "Instruction classes",
    "tensor": "Tensor cores",
    "subsystems": "Subsystems",
}
"""Headings, by the first part of a key."""
LATENCIES = "gpus/latencies.md"


def gpu_pages() -> Iterator[Page]:
    """The list first; GPUs of the papers last. Those of whoever builds the site are left out."""
    names = set(gpu_names()) - set(own_names())
    gpus = [load_gpu(name) for name in sorted(names, key=lambda name: ("/" in name, name))]
    yield Page("gpus/index.md", "All GPUs", _index(gpus))
    yield Page(LATENCIES, "λ, Λ and needed occupancy", _latencies(gpus))
    for gpu in gpus:
        yield Page(f"gpus/{gpu.name}.md", gpu.name, _page(gpu))


def _index(gpus: list[Gpu]) -> str:
    products = [[_link(g), cell(g.title), *_figures(g), _firm(g)] for g in gpus if not g.abstract_only]
    papers = [[_link(g), cell(g.title), _firm(g)] for g in gpus if g.abstract_only]
    kinds = "\n".join(f"- **{kind}**: {inline(meaning)}" for kind, meaning in KINDS.items())
    return "\n\n".join(
        [
            "# GPUs",
            "A GPU is a data file in which each number names its source. `drywarp gpus NAME` prints what these pages "
            "show, `drywarp gpus --compare NAME,NAME` several of them side by side; `--gpu path.toml` takes your own "
            "file, and `drywarp gpus --add path.toml` gives it a name. "
            "[λ, Λ and needed occupancy](latencies.md) of all of them are in one table.",
            table(["name", "GPU", "CC", "SMs", "clock", "DRAM", "firm"], products),
            "*Firm* is the share of numbers that were measured, documented or derived for this GPU or its chip, rather "
            "than taken over from another one or assumed.",
            "## GPUs of the papers",
            "With the numbers that the papers print. They take workloads stated by hand.",
            table(["name", "GPU", "firm"], papers),
            "## Kinds of numbers",
            "From the firmest to the weakest:\n\n" + kinds,
        ]
    )


_KINDS_OF_ACCESS = {"memory": "memory", "sfu": "SFU", "shared": "shared memory"}


def _latencies(gpus: list[Gpu]) -> str:
    """λ and Λ of four kinds of instructions on every GPU, and the warps that hide these latencies."""
    heads = ["GPU", "add λ, Λ", *(f"{_KINDS_OF_ACCESS[partner]} λ, Λ" for partner in PARTNERS)]
    warps = ["adds alone", "memory alone", "at the cusp", "α of the cusp", "warps of an SM"]
    rows = [[_link(gpu), *_costs(gpu)] for gpu in gpus]
    needed = [[_link(gpu), *_needed(gpu)] for gpu in gpus]
    return "\n\n".join(
        [
            "# λ, Λ and needed occupancy",
            "λ is in cycles of one SM between two warp instructions of a kind, the reciprocal of its throughput; Λ in "
            "cycles from issue until a dependent instruction can issue. *Memory* is a streaming load of 4 bytes per "
            "lane: on products, λ follows from the DRAM read bandwidth with all SMs active, and Λ is that of an L2 "
            "miss, both at the boost clock. A dash: the GPU's file does not say. The GPUs' own pages give the source "
            "of each number.",
            table(heads, rows),
            "## Needed occupancy",
            "Warps per SM that hide the latency, by Little's law: Λ / λ of adds alone and of memory accesses alone, "
            "and the needed occupancy at the cusp, where α adds to one access use up memory and the SM's issue alike "
            "(Volkov 2016, §4.5). The adds depend on each other; with ILP, fewer warps do. `drywarp cusp --gpu NAME` "
            "shows the whole curve.",
            table(["GPU", *warps], needed),
        ]
    )


def _mix(gpu: Gpu, partner: str) -> Mix | None:
    try:
        return mix_of(gpu, partner)
    except UsageError:  # a GPU of a paper that does not print it
        return None


def _costs(gpu: Gpu) -> list[str]:
    mixes = [_mix(gpu, partner) for partner in PARTNERS]
    adds = next((f"{1 / mix.alu_thru:.3g}, {mix.alu_lat:.3g}" for mix in mixes if mix), "–")
    return [adds, *(f"{1 / mix.mem_thru:.3g}, {mix.mem_lat:.4g}" if mix else "–" for mix in mixes)]


def _needed(gpu: Gpu) -> list[str]:
    mix = _mix(gpu, PARTNERS[0])
    most = gpu.parameters.max_warps_per_sm if gpu.abstract_only else gpu.occupancy.max_warps_per_sm
    room = "–" if most is None else str(most)
    if mix is None:
        return ["–"] * 4 + [room]
    alpha = mix.cusp_intensity()
    warps = (mix.warps_for_arithmetic, mix.warps_for_memory, mix.needed_occupancy(alpha))
    return [*(f"{each:.3g}" for each in warps), f"{alpha:.3g}", room]


def _link(gpu: Gpu) -> str:
    return f'<a href="{cell(gpu.name)}.html"><code>{cell(gpu.name)}</code></a>'


def _figures(gpu: Gpu) -> list[str]:
    device, dram = gpu.device, gpu.memory.dram
    named = gpu.compute_capability or gpu.arch
    return [cell(named), str(device.sm_count), f"{device.boost_clock_mhz:g} MHz", f"{dram.peak_gbs:g} GB/s"]


def _firm(gpu: Gpu) -> str:
    facts = [fact for _, fact in gpu.facts()]
    weak = sum(fact.kind in ("proxy", "inherited", "assumed") for fact in facts)
    return f"{1 - weak / len(facts):.0%}" if facts else ""


def _page(gpu: Gpu) -> str:
    facts = list(gpu.facts())
    used = {fact.source for _, fact in facts}
    capability = f", compute capability {gpu.compute_capability}" if gpu.compute_capability else ""
    parts = [f"# {inline(gpu.title)}", f"`--gpu {gpu.name}`{inline(capability)}. {_takes(gpu)}"]
    for section, rows in groupby(facts, key=lambda item: item[0].partition(".")[0]):
        parts += [f"## {_SECTIONS[section]}", _facts(section, list(rows))]
    sources = [[f'<span id="source-{cell(key)}"><code>{cell(key)}</code></span>', cell(text)]
               for key, text in gpu.sources.items() if key in used]  # fmt: skip
    parts += ["## Sources", table(["key", "source"], sources)]
    index = f"{'../' * gpu.name.count('/')}index.md"
    parts += [f"SHA-256 of all that is said here: `{gpu.file_hash}`. [All GPUs]({index})."]
    return "\n\n".join(parts) + "\n"


def _takes(gpu: Gpu) -> str:
    if not gpu.abstract_only:
        return f"Kernels are compiled for `{gpu.arch}`."
    return f"It takes workloads stated by hand{f' and {gpu.code_arch} code' if gpu.code_arch else ''}."


def _facts(section: str, rows: list[tuple[str, Fact]]) -> str:
    def row(key: str, fact: Fact) -> list[str]:
        source = f'<a href="#source-{cell(fact.source)}"><code>{cell(fact.source)}</code></a>'
        name = key.removeprefix(f"{section}.")
        return [f"<code>{cell(name)}</code>", cell(str(fact)), _kind(fact.kind), source, cell(fact.note)]

    return table(["key", "value", "kind", "source", "note"], [row(key, fact) for key, fact in rows])


def _kind(kind: str) -> str:
    weak = " weak" if kind in ("proxy", "inherited", "assumed") else ""
    return f'<span class="kind{weak}">{cell(kind)}</span>'
