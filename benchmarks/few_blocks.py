"""How wrong a grid's instruction count is if few blocks represent all of them, as past the limits of emulation.

    python benchmarks/few_blocks.py FOLDER…

Compares the default sample of every example whose blocks may differ with the few blocks inside the grid, separately
where these behave alike and where they do not. The figures stand in
`src/drywarp/analysis/uncertainty/uncertainty.toml`.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

from drywarp.analysis.prepare import prepare_kernel
from drywarp.errors import DrywarpError
from drywarp.execution.emulator.deadlock import all_alike
from drywarp.execution.emulator.run import emulate
from drywarp.execution.emulator.sampling import fewest

EXAMPLES = Path(__file__).parents[1] / "examples"


def main(folders: list[str]) -> None:
    """Print each kernel's ratio, and the factor that nine in ten do not exceed."""
    found: dict[str, list[float]] = {"alike": [], "different": []}
    for folder in folders or [str(EXAMPLES)]:
        for path in sorted(Path(folder).rglob("*.cu")):
            try:
                prepared = prepare_kernel(path, gpu="a100")
                sampling = prepared.profile.sampling
                if sampling is None or all_alike(prepared.kernel.instructions, prepared.profile.cfg):
                    continue
                few = emulate(prepared.kernel, prepared.launch, blocks=fewest(prepared.launch.grid)).profile
            except DrywarpError as error:
                print(f"{path.stem:24} {error}", file=sys.stderr)
                continue
            assert few.sampling is not None
            ratio = few.sampling.estimate / sampling.estimate
            kind = "alike" if len({block.paths for block in few.blocks}) == 1 else "different"
            found[kind].append(max(ratio, 1 / ratio))
            print(f"{path.stem:24} {sampling.of:9} blocks {sampling.basis:10} {len(few.blocks)} {kind:10} {ratio:.4f}")
    for kind, ratios in found.items():
        if ratios:
            ratios.sort()
            most = ratios[math.ceil(0.9 * len(ratios)) - 1]
            print(f"{kind}: {len(ratios)} kernels, nine in ten within a factor of {most:.4f}, all of {ratios[-1]:.4f}")


if __name__ == "__main__":
    main(sys.argv[1:])
