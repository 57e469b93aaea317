"""Writes the committed assembly anew from kernels of ours: `python -m tests.amd.make_assembly`. Needs a clang."""

from __future__ import annotations

import re
from pathlib import Path

from drywarp.frontends.amd import compile as amd_compile
from drywarp.frontends.cuda import CudaOptions
from drywarp.frontends.loaded import launch_comment

ROOT = Path(__file__).parents[2]
FOLDER = Path(__file__).parent / "assembly"
SOURCES = {
    "saxpy": ("examples/amd/saxpy.cl", ("gfx90a", "gfx802")),
    "tiled_matmul": ("examples/amd/tiled_matmul.hip", ("gfx942", "gfx802")),
    "collatz": ("examples/collatz.cu", ("gfx90a",)),
    "integer_division": ("examples/integer_division.cu", ("gfx942",)),
    "transpose_padded": ("examples/transpose_padded.cu", ("gfx942",)),
    "reduction": ("examples/reduction.cu", ("gfx90a",)),
}


BALLAST = re.compile(
    r"\s*;|\s*\.(file\s+0|set|addrsig|ident|p2alignl|fill|section\s+(\.debug|\.note|\.AMDGPU))|\.L(debug|cu_|str_|info_|addr|line)"
)
COPY = re.compile(r"\t\.protected\t__clang_ocl_kern_imp_.*?-- End function\n", re.S)


def tidied(text: str) -> str:
    """Without debug information, the compiler's remarks, and the copies of kernels that kernels may call."""
    lines = COPY.sub("", text + "\n").splitlines()
    return "".join(
        f"{line.partition('; ')[0].rstrip()}\n" for line in lines if line.strip() and not BALLAST.match(line)
    )


def main() -> None:
    texts: list[str] = []
    read = amd_compile.kernels_of

    def noted(text: str, origin: str, arch: str) -> object:
        texts.append(text)
        return read(text, origin, arch)

    amd_compile.kernels_of = noted  # type: ignore[assignment]
    for name, (place, archs) in SOURCES.items():
        source = ROOT / place
        comment = launch_comment(source.read_text(), place)
        for arch in archs:
            options = CudaOptions(comment.defines)
            amd_compile.load_amd(Path(place), source.read_text(), arch=arch, entry=comment.entry, options=options)
            (FOLDER / f"{name}-{arch}.s").write_text(tidied(texts[-1]))


if __name__ == "__main__":
    main()
