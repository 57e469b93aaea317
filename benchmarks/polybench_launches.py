"""Launches of PolyBench/GPU's CUDA kernels, written as a launches.toml into the suite, for `drywarp corpus`.

    python benchmarks/polybench_launches.py polybench/CUDA
    drywarp corpus polybench/CUDA --gpu a100

The suite's problem sizes are macros: here they are all 256. A matrix is 256 x 256 of the kernel's own type, blocks
are the suite's (32 x 8 or 256), grids cover the matrix, and counters of outer host loops are 1.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from drywarp.errors import DrywarpError
from drywarp.frontends.binary.module import load_module
from drywarp.frontends.cuda import CudaOptions

SIZE = 256
MACROS = "N M NI NJ NK NL NM NX NY NR NQ NP"
COUNTERS = {"t", "k", "i", "r", "i1"}
TYPES = {"float": "f32", "double": "f64", "int": "i32"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    common = next((place for place in (folder / "common", folder.parent / "common") if place.is_dir()), folder)
    defines = dict.fromkeys(MACROS.split(), str(SIZE))
    tables = []
    for source in sorted(folder.rglob("*.cu")):
        flat = re.search(r"#define DIM_THREAD_BLOCK(?:_KERNEL_1)?_X 256", _headers(source)) is not None
        block, grid = ("256,1", f"{SIZE},1") if flat else ("32,8", f"{SIZE // 32},{SIZE // 8}")
        try:
            module = load_module(source, arch="sm_80", options=CudaOptions(defines, (str(common),)))
        except DrywarpError as error:
            print(f"left out: {error}", file=sys.stderr)
            continue
        for kernel in module.kernels:
            arguments = []
            for parameter in kernel.parameters:
                kind = TYPES.get(parameter.type, "f32")
                if parameter.pointer:
                    cells = SIZE**3 if source.parent.name in ("3DCONV", "DOITGEN") else SIZE * SIZE
                    value = f'"{kind}[{cells}]:random"'
                else:
                    value = "1" if parameter.name in COUNTERS else str(SIZE) if kind == "i32" else "1.5"
                arguments.append(f"{parameter.name} = {value}")
            tables.append(
                f'[[launch]]\nfile = "{source.relative_to(folder).as_posix()}"\nkernel = "{kernel.name}"\n'
                f"grid = [{grid}]\nblock = [{block}]\nargs = {{ {', '.join(arguments)} }}\n"
                f"defines = {{ {', '.join(f'{name} = {value}' for name, value in defines.items())} }}\n"
            )
    (folder / "launches.toml").write_text("\n".join(tables), encoding="utf-8")
    print(f"{len(tables)} launches written to {folder / 'launches.toml'}")
    return 0


def _headers(source: Path) -> str:
    return "\n".join(path.read_text(errors="replace") for path in sorted(source.parent.glob("*.cu*")))


if __name__ == "__main__":
    sys.exit(main())
