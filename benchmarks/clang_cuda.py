"""clang in the place of nvcc, with the headers, ptxas and runtime of CUDA 12.6: how HeCBench was measured.

    python benchmarks/clang_cuda.py --make TREE          # lays out a toolkit in TREE; downloads its wheels with pip
    CUDA_TREE=TREE make CC="python benchmarks/clang_cuda.py" ARCH=sm_86

Takes nvcc's options, translates those that clang has other names for, and leaves out what clang has no use for. The
clang is the 18.1 inside the package `ziglang`; $CLANG names another. `fatbinary`, which CUDA's wheels lack, is that of
drywarp[ptx] behind a script.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

WHEELS = ("nvidia-cuda-nvcc-cu12==12.6.*", "nvidia-cuda-runtime-cu12==12.6.*", "nvidia-cuda-cccl-cu12==12.6.*")
CURAND = "nvidia-curand-cu12==10.3.7.77"
HEADERS = ("nvidia-cublas-cu12==12.6.*", "nvidia-cusparse-cu12==12.5.*")  # their libraries are not kept
CLANG = "ziglang==0.13.*"
# The package's own headers are clang's, in a folder that clang does not look in; its own target is musl's.
COMPILER = """#!/bin/sh
exec {zig}/zig clang --driver-mode=g++ --target=x86_64-linux-gnu -resource-dir {resources} "$@"
"""
FATBINARY = """#!{python}
import re, subprocess, sys

def image(word):
    found = re.match(r"--image=profile=(sm|compute)_(\\d+)a?,file=(.*)", word)
    if not found:
        return word
    return f"--image3=kind={{'elf' if found[1] == 'sm' else 'ptx'}},sm={{found[2]}},file={{found[3]}}"

sys.exit(subprocess.run(["{fatbinary}", *map(image, sys.argv[1:])], check=False).returncode)
"""
DROPPED = {
    "-lineinfo", "--extended-lambda", "-extended-lambda", "-expt-extended-lambda", "--expt-relaxed-constexpr",
    "-expt-relaxed-constexpr", "--extra-device-vectorization", "-allow-unsupported-compiler", "-dlink", "-m64",
}  # fmt: skip
DROPPED_WITH_VALUE = {"-diag-suppress", "--diag-suppress", "-Xcudafe", "-ccbin", "-cudart", "--cudart"}


def make(tree: Path) -> None:
    """Lay out bin, include, lib64 and nvvm as clang looks for them."""
    wheels = tree / "wheels"
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(wheels)]
    subprocess.run([*pip, *WHEELS, CURAND, *HEADERS, CLANG], check=True)
    parts = [wheels / "nvidia" / name for name in ("cuda_nvcc", "cuda_runtime", "curand", "cuda_cccl")]
    headers = [wheels / "nvidia" / name for name in ("cublas", "cusparse")]
    for part in parts + headers:
        shutil.copytree(part / "include", tree / "include", dirs_exist_ok=True)
    for part in headers:
        shutil.rmtree(part)
    (tree / "lib64").mkdir(exist_ok=True)
    for library in [*(parts[1] / "lib").glob("*.so*"), *(parts[2] / "lib").glob("libcurand.so*")]:
        shutil.copy(library, tree / "lib64")
        (tree / "lib64" / f"{library.name.partition('.so')[0]}.so").symlink_to(library.name)
    shutil.copytree(parts[0] / "nvvm" / "libdevice", tree / "nvvm" / "libdevice")
    (tree / "version.txt").write_text("CUDA Version 12.6.0\n")
    (tree / "bin").mkdir()
    shutil.copy(parts[0] / "bin" / "ptxas", tree / "bin")
    toolkit = find_spec("nvidia.cu13")
    if toolkit is None or not toolkit.submodule_search_locations:
        sys.exit("fatbinary is missing: pip install 'drywarp[ptx]'")
    fatbinary = Path(toolkit.submodule_search_locations[0]) / "bin" / "fatbinary"
    zig, resources = (wheels / "ziglang").resolve(), (tree / "clang").resolve()
    resources.mkdir()
    (resources / "include").symlink_to(zig / "lib" / "include")
    (tree / "bin" / "clang++").write_text(COMPILER.format(zig=zig, resources=resources))
    (tree / "bin" / "fatbinary").write_text(FATBINARY.format(python=sys.executable, fatbinary=fatbinary))
    for tool in (tree / "bin").iterdir():
        tool.chmod(0o755)


def translated(words: list[str]) -> list[str]:
    """nvcc's options as clang's. Exits with a line for what clang cannot do: separate compilation."""
    done: list[str] = []
    left = list(words)
    while left:
        word = left.pop(0)
        name, _, value = word.partition("=")
        if name in ("-arch", "--gpu-architecture", "-gencode", "-code"):
            value = value or left.pop(0)
            if name in ("-arch", "--gpu-architecture"):
                done.append(f"--cuda-gpu-arch={value.replace('compute', 'sm')}")
        elif name in ("-rdc", "--relocatable-device-code", "-dc"):
            if value != "false":
                sys.exit("error: separate compilation is not among what clang does here")
        elif name in ("-Xcompiler", "--compiler-options"):
            done += (value or left.pop(0)).strip("\"'").replace(",", " ").split()
        elif name in ("-Xptxas", "--ptxas-options"):
            parts = [part for part in (value or left.pop(0)).split(",") if part != "-v"]
            done += [word for part in parts for word in ("-Xcuda-ptxas", part)]
        elif name in ("-maxrregcount", "--maxrregcount"):
            done += ["-Xcuda-ptxas", f"--maxrregcount={value or left.pop(0)}"]
        elif name in ("-use_fast_math", "--use_fast_math"):
            done += ["-ffast-math", "-fcuda-flush-denormals-to-zero", "-fcuda-approx-transcendentals"]
        elif name in DROPPED_WITH_VALUE:
            value or left.pop(0)
        elif name == "-x" and left and left[0] == "cu":
            done += ["-x", "cuda"]
            left.pop(0)
        elif name in ("--std", "-std"):
            done.append(f"-std={value or left.pop(0)}")
        elif name not in DROPPED:
            done.append(word)
    return done


def main() -> None:
    if sys.argv[1:2] == ["--make"]:
        return make(Path(sys.argv[2]))
    tree = os.environ.get("CUDA_TREE")
    if not tree:
        sys.exit("error: CUDA_TREE is not set (python benchmarks/clang_cuda.py --make TREE makes one)")
    words = translated(sys.argv[1:])
    if not any(word.endswith((".cu", ".cpp", ".cc", ".c")) for word in words):
        # To link objects, clang needs no architecture, and with OpenMP would look for code to offload.
        words = [word for word in words if not word.startswith("--cuda-gpu-arch")]
    links = [] if "-c" in words else [f"-L{tree}/lib64", "-lcudart", "-ldl", "-lrt", "-pthread"]
    compiler = os.environ.get("CLANG", f"{tree}/bin/clang++")
    fixed = [compiler, f"--cuda-path={tree}", f"-I{tree}/include", "-Wno-unknown-cuda-version", "-w"]
    sys.exit(subprocess.run([*fixed, *words, *links], check=False).returncode)


if __name__ == "__main__":
    main()
