"""A page for each GPU: every number of its file with its kind and its source."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from drywarp.hardware import Fact, Gpu, gpu_names, load_gpu
from drywarp.hardware.fact import KINDS

from .escape import cell, inline, table
from .page import Page

_SECTIONS = {
    "device": "The product",
    "memory": "Memory",
    "occupancy": "What an SM has room for",
    "scheduler": "Warp schedulers",
    "parameters": "Inputs of single models",
    "machine_code": "Machine code",
    "classes": "Instruction classes",
    "tensor": "Tensor cores",
    "subsystems": "Subsystems",
}
"""Headings, by the first part of a key."""


def gpu_pages() -> Iterator[Page]:
    """The list first; GPUs of the papers last."""
    gpus = [load_gpu(name) for name in sorted(gpu_names(), key=lambda name: ("/" in name, name))]
    yield Page("gpus/index.md", "All GPUs", _index(gpus))
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
            "show; `--gpu path.toml` takes your own file.",
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
