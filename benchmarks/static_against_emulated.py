"""How far the static mode is from the emulator on the bundled examples.

    python benchmarks/static_against_emulated.py [--gpu a100] [example.cu …]

Ratios of static to emulated over the whole grid: warp instructions, sectors of global loads and stores,
wavefronts of shared memory, and bytes from and to DRAM. First with the launch of the example's comment;
then with its grid and block only, when the arguments are assumed.
"""

import sys
from pathlib import Path

from drywarp.analysis.prepare import prepare_kernel
from drywarp.analysis.prepared import Prepared
from drywarp.analysis.request import Options
from drywarp.frontends.loaded import launch_comment

ROOT = Path(__file__).parents[1]


def figures(bound: Prepared) -> list[float]:
    behaviour = bound.behaviour
    return [
        float(bound.profile.executions().sum()),
        behaviour.global_load_sectors,
        behaviour.global_store_sectors,
        behaviour.shared_wavefronts,
        behaviour.dram_bytes,
    ]


def ratio(static: float, emulated: float) -> str:
    if emulated == 0:
        return "-" if static == 0 else "new"
    value = static / emulated
    return "1" if abs(value - 1) < 1e-9 else f"{value:.3g}"


def without_arguments(example: Path, gpu: str) -> Prepared:
    text = example.read_text()
    said = launch_comment(text, example.name)
    bare = "\n".join(line for line in text.splitlines() if not line.startswith("// drywarp:"))
    return prepare_kernel(
        bare + "\n", gpu=gpu, grid=said.grid, block=said.block, defines=said.defines, options=Options(static=True)
    )


def main() -> None:
    arguments = sys.argv[1:]
    gpu = "a100"
    if arguments[:1] == ["--gpu"]:
        gpu, arguments = arguments[1], arguments[2:]
    examples = [Path(a) for a in arguments] or sorted((ROOT / "examples").glob("*.cu"))
    names = ("instr.", "loads", "stores", "shared", "DRAM")
    print(f"| {gpu} | given: " + " | ".join(names) + " | no arguments: " + " | ".join(names) + " |")
    print("|---" * (1 + 2 * len(names)) + "|")
    for example in examples:
        emulated = figures(prepare_kernel(example, gpu=gpu))
        static = figures(prepare_kernel(example, gpu=gpu, options=Options(static=True)))
        assumed = figures(without_arguments(example, gpu))
        cells = [ratio(s, e) for s, e in zip(static, emulated, strict=True)]
        cells += [ratio(s, e) for s, e in zip(assumed, emulated, strict=True)]
        print(f"| {example.stem} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
