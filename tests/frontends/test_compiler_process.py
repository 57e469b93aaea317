"""NVRTC in a process of its own: what it crashes on ends in one line, and the next source compiles."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from time import sleep

import pytest

from drywarp.errors import CompileError
from drywarp.frontends.cuda.nvrtc import Compiled, compile_program

FLAGS = ["--gpu-architecture=sm_80"]
KERNEL = 'extern "C" __global__ void k{0}(int* p) {{ *p = {0}; }}'
SLOW = "__global__ void k(int* p) { " + "if (*p) " * 30_000 + "*p = 1; }"
"""Takes the compiler minutes, time enough to have it crash."""


def compilers_of(parent: int) -> list[int]:
    """The processes in which one compiles."""
    found = []
    with suppress(FileNotFoundError, ProcessLookupError):
        for task in Path(f"/proc/{parent}/task").iterdir():
            for child in map(int, (task / "children").read_text().split()):
                if b"nvrtc_process" in Path(f"/proc/{child}/cmdline").read_bytes():
                    found.append(child)
    return found


def crash(parent: int, done: Callable[[], bool]) -> None:
    """Have all compilers of a process crash, as some sources make them, until it is done with what it waits for."""
    while not done():
        for pid in compilers_of(parent):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSEGV)
        sleep(0.01)


def test_a_source_that_crashes_the_compiler_is_one_line(tmp_path: Path, own_cache: Path) -> None:
    source = tmp_path / "slow.cu"
    source.write_text(SLOW)
    command = [sys.executable, "-m", "drywarp", "analyze", str(source), "--grid=1", "--block=32", "--arg=p=i32[1]"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        crash(process.pid, lambda: process.poll() is not None)
        output, errors = process.communicate()
    assert (process.returncode, output) == (2, "")
    (line,) = errors.splitlines()
    assert "slow.cu: NVRTC crashed on this source (Segmentation fault)" in line


def test_the_next_source_compiles() -> None:
    with ThreadPoolExecutor(1) as threads:
        refused = threads.submit(compile_program, SLOW, "slow.cu", FLAGS)
        crash(os.getpid(), refused.done)
        with pytest.raises(CompileError, match="crashed"):
            refused.result()
    assert compile_program(KERNEL.format(1), "a.cu", FLAGS).cubin


def test_a_compiler_ends_with_the_process_that_asked(tmp_path: Path, own_cache: Path) -> None:
    source = tmp_path / "slow.cu"
    source.write_text(SLOW)
    command = [sys.executable, "-m", "drywarp", "analyze", str(source), "--grid=1", "--block=32", "--arg=p=i32[1]"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while not (compilers := compilers_of(process.pid)):
            assert process.poll() is None, "it ended without compiling"
            sleep(0.01)
        process.kill()
    while any(Path(f"/proc/{pid}/cmdline").exists() for pid in compilers):
        sleep(0.01)


def test_threads_compile_side_by_side() -> None:
    def compiled(number: int) -> Compiled:
        return compile_program(KERNEL.format(number), "a.cu", FLAGS, [])

    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(compiled, range(8)))
    assert all(f"k{number}".encode() in one.cubin for number, one in enumerate(found))


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_fork_compiles_apart_from_its_parent() -> None:
    compile_program(KERNEL.format(1), "a.cu", FLAGS)
    reads, writes = os.pipe()
    if (child := os.fork()) == 0:
        try:
            os.write(writes, b"k2" if b"k2" in compile_program(KERNEL.format(2), "a.cu", FLAGS).cubin else b"no")
        finally:
            os._exit(0)
    os.close(writes)
    assert b"k3" in compile_program(KERNEL.format(3), "a.cu", FLAGS).cubin
    assert os.read(reads, 2) == b"k2"
    os.close(reads)
    os.waitpid(child, 0)
