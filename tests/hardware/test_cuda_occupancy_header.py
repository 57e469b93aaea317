"""Our occupancy against NVIDIA's own cuda_occupancy.h, where a C++ compiler and that header are found."""

from __future__ import annotations

import random
import shutil
import site
import subprocess
from pathlib import Path

import pytest

from drywarp.errors import UsageError
from drywarp.hardware import OccupancyLimits, capabilities, limits_of, occupancy

# Fermi and older are unknown to the header.
CAPABILITIES = [capability for capability in capabilities() if int(capability.split(".")[0]) >= 3]
LAUNCHES = 250

PROGRAM = r"""
#include <cstdio>
#include <cuda_occupancy.h>
int main() {
    cudaOccDeviceProp p;
    cudaOccFuncAttributes f;
    cudaOccDeviceState s;
    int threads, shared;
    p.warpSize = 32;
    p.numSms = 1;
    size_t &per_block = p.sharedMemPerBlock, &per_sm = p.sharedMemPerMultiprocessor;
    while (scanf("%d %d %d %d %d %d %zu %zu %zu %zu %d %d %d", &p.computeMajor, &p.computeMinor,
                 &p.maxThreadsPerBlock, &p.maxThreadsPerMultiprocessor, &p.regsPerBlock, &p.regsPerMultiprocessor,
                 &per_block, &per_sm, &p.sharedMemPerBlockOptin, &p.reservedSharedMemPerBlock,
                 &f.numRegs, &shared, &threads) == 13) {
        f.maxThreadsPerBlock = p.maxThreadsPerBlock;
        f.sharedSizeBytes = 0;
        f.partitionedGCConfig = PARTITIONED_GC_OFF;
        f.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
        f.maxDynamicSharedSizeBytes = shared;
        f.numBlockBarriers = 0;
        cudaOccResult r;
        cudaOccError e = cudaOccMaxActiveBlocksPerMultiprocessor(&r, &p, &f, &s, threads, shared);
        printf("%d %d %d %d\n", (int)e, e ? 0 : r.activeBlocksPerMultiprocessor, r.allocatedRegistersPerBlock,
               (int)r.allocatedSharedMemPerBlock);
    }
}
"""


def header_folder() -> Path | None:
    """Where cuda_occupancy.h lies: a CUDA toolkit, or the runtime's wheel."""
    toolkits = sorted(Path("/usr/local").glob("cuda*/include"))
    wheels = [path for folder in site.getsitepackages() for path in Path(folder).glob("nvidia/*/include")]
    return next((folder for folder in (*toolkits, *wheels) if (folder / "cuda_occupancy.h").is_file()), None)


@pytest.fixture(scope="module")
def header_answers(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, int, int, int], list[int]]:
    """The header's error code, blocks, registers and shared bytes of all launches."""
    compiler, folder = shutil.which("g++"), header_folder()
    if compiler is None or folder is None:
        pytest.skip("needs g++ and NVIDIA's cuda_occupancy.h")
    work = tmp_path_factory.mktemp("header")
    (work / "ask.cpp").write_text(PROGRAM)
    command = [compiler, "-w", "-I", str(folder), "-o", str(work / "ask"), str(work / "ask.cpp")]
    built = subprocess.run(command, capture_output=True, text=True)
    if built.returncode:
        pytest.skip(f"cuda_occupancy.h does not compile here: {built.stderr.splitlines()[0]}")
    asked = [(c, *launch) for c in CAPABILITIES for launch in launches(c)]
    devices = {c: described(c) for c in CAPABILITIES}
    lines = [" ".join(map(str, (*devices[c], *launch))) for c, *launch in asked]
    answer = subprocess.run([work / "ask"], input="\n".join(lines), capture_output=True, text=True, check=True)
    answers = [[int(word) for word in line.split()] for line in answer.stdout.splitlines()]
    return dict(zip(asked, answers, strict=True))


def described(capability: str) -> tuple[str | int, ...]:
    """The device as the program reads it."""
    limits = limits_of(capability)
    return (
        *capability.split("."),
        limits.max_threads_per_block,
        limits.max_threads_per_sm,
        limits.max_registers_per_block,
        limits.registers_per_sm,
        limits.shared_bytes_per_block_default,
        limits.shared_bytes_per_sm,
        limits.shared_bytes_per_block_optin,
        limits.shared_reserved_per_block,
    )


def launches(capability: str) -> list[tuple[int, int, int]]:
    """Registers, shared bytes and threads: a fixed sample, dense where limits change."""
    chosen, limits = random.Random(capability), limits_of(capability)
    most = limits.shared_bytes_per_block_optin
    usual = [n for n in (32, 33, 40, 64, 65) if n <= limits.max_registers_per_thread]  # the header says 255 for 3.0
    return [
        (
            chosen.choice([chosen.randint(1, limits.max_registers_per_thread), chosen.choice(usual)]),
            chosen.choice([0, 0, chosen.randint(0, most // 8), chosen.randint(0, most), most]),
            chosen.choice([chosen.randint(1, 1024), 32 * chosen.randint(1, 32)]),
        )
        for _ in range(LAUNCHES)
    ]


def ours(limits: OccupancyLimits, registers: int, shared: int, threads: int) -> list[int]:
    try:
        result = occupancy(limits, registers, shared, threads)
    except UsageError:
        return [0, 0]
    return [0, result.blocks_per_sm, result.registers_per_block, result.shared_bytes_per_block]


@pytest.mark.parametrize("capability", CAPABILITIES)
def test_as_nvidias_header(capability: str, header_answers: dict[tuple[str, int, int, int], list[int]]) -> None:
    limits = limits_of(capability)
    refused = 0
    for launch in launches(capability):
        expected, found = header_answers[(capability, *launch)], ours(limits, *launch)
        assert found == expected[: len(found)], launch
        refused += len(found) == 2
    assert refused < LAUNCHES * 2 / 3
