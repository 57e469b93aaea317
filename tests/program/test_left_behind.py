"""Nothing stays behind of a program that is killed, interrupted, ends in a launch, or takes gigabytes."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from drywarp.support.folders import scratch_folder

from .conftest import nvcc

SOURCE = """
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>
__global__ void spin(int* x) {
  int made = *x;
  for (long long n = 0; n < 1ll << 40; ++n) made = made * 5 + (made >> 3 ^ (int)n);
  *x = made;
}
__global__ void ends(char* first, char* last) { *first = 1; *last = 2; }
static void* leave(void* word) {
  usleep(300000);
  if (*(char*)word == 'e') exit(3);
  raise(SIGKILL);
  return nullptr;
}
int main(int count, char** words) {
  int* x;
  if (!std::strcmp(words[1], "big")) {
    const size_t size = 30ull << 30;
    char *big, *more, ends_of[2] = {};
    if (cudaMalloc(&big, size) || cudaMalloc(&more, size) != cudaErrorMemoryAllocation) return 4;
    cudaMemset(big, 7, 1 << 20);
    ends<<<1, 1>>>(big, big + size - 1);
    cudaMemcpy(ends_of, big, 1, cudaMemcpyDeviceToHost);
    cudaMemcpy(ends_of + 1, big + size - 1, 1, cudaMemcpyDeviceToHost);
    std::printf("%d %d\\n", ends_of[0], ends_of[1]);
    return 0;
  }
  cudaMalloc(&x, 4);
  cudaMemset(x, 0, 4);
  std::FILE* file = std::fopen(words[2], "w");
  std::fprintf(file, "%d", getpid());
  std::fclose(file);
  pthread_t other;
  if (std::strcmp(words[1], "wait")) pthread_create(&other, nullptr, leave, words[1]);
  spin<<<1, 32>>>(x);
  return cudaDeviceSynchronize() ? 5 : 6;
}
"""


@pytest.fixture(scope="module")
def spins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program with a kernel that does not end by itself."""
    compiler = nvcc()
    if compiler is None:
        pytest.skip("whole programs need nvcc (drywarp[ptx]) and g++")
    folder = tmp_path_factory.mktemp("spins")
    (folder / "spins.cu").write_text(SOURCE)
    words = [*compiler, "-arch=sm_80", "-o", str(folder / "spins"), str(folder / "spins.cu")]
    subprocess.run(words, check=True, capture_output=True)
    return folder / "spins"


def heed_signals() -> None:
    """Also where the tests themselves run in the background, whose children ignore them."""
    for one in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(one, signal.SIG_DFL)


@contextlib.contextmanager
def started(tmp_path: Path, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """`drywarp run` as a process, with `tmp_path / "tmp"` as the folder of temporary files."""
    (tmp_path / "tmp").mkdir(exist_ok=True)
    environment = os.environ | {"TMPDIR": str(tmp_path / "tmp")}
    command = [sys.executable, "-m", "drywarp", "run", "--emulate-steps", "100000000000", "--", *words]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, env=environment, preexec_fn=heed_signals)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def awaited(place: Path, process: subprocess.Popen[bytes]) -> int:
    """The number that the program writes when it has begun."""
    while not place.exists() or not place.read_text():
        assert process.poll() is None
        time.sleep(0.05)
    return int(place.read_text())


def has_ended(number: int) -> bool:
    for _ in range(200):
        try:
            os.kill(number, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("by", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_an_interrupted_launch_leaves_nothing(spins: Path, tmp_path: Path, by: str) -> None:
    with started(tmp_path, str(spins), "wait", str(tmp_path / "began")) as process:
        number = awaited(tmp_path / "began", process)
        time.sleep(0.3)
        process.send_signal(getattr(signal, by))
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said.decode().splitlines()[-1].startswith("drywarp: interrupted after 0 launches; the program was stopped")
    assert list((tmp_path / "tmp").iterdir()) == []
    assert has_ended(number)


def test_what_a_killed_run_leaves_is_removed_by_the_next(spins: Path, tmp_path: Path) -> None:
    source = tmp_path / "built.cu"
    source.write_text(SOURCE)
    with started(tmp_path, str(source), "wait", str(tmp_path / "began")) as process:
        number = awaited(tmp_path / "began", process)
        (folder,) = (tmp_path / "tmp").glob("drywarp-*")
        assert folder.name.startswith(f"drywarp-run-{process.pid}-")
        with started(tmp_path, str(spins), "exits", str(tmp_path / "beside")) as beside:
            beside.communicate(timeout=60)
        assert folder.exists()  # of a run that goes on
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert has_ended(number)
    assert folder.exists()
    with started(tmp_path, str(spins), "exits", str(tmp_path / "after")) as after:
        after.communicate(timeout=60)
    assert list((tmp_path / "tmp").iterdir()) == []


def test_folders_of_others_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    dead = subprocess.Popen(["true"])
    dead.wait()
    names = {
        f"drywarp-run-{dead.pid}-a": False,
        f"drywarp-run-{os.getpid()}-b": True,
        "drywarp-run-notanumber-c": True,
        f"drywarp-serve-{dead.pid}-d": True,
        f"other-{dead.pid}-e": True,
    }
    for name in names:
        (tmp_path / name).mkdir()
        (tmp_path / name / "content").write_text("x")
    (tmp_path / f"drywarp-run-{dead.pid}-link").symlink_to(tmp_path / f"other-{dead.pid}-e")
    with scratch_folder("run") as own:
        assert own.is_dir()
        assert {name: (tmp_path / name / "content").exists() for name in names} == names
    assert not own.exists()


def test_a_program_that_exits_or_is_killed_in_a_launch(run: Any, spins: Path, tmp_path: Path) -> None:
    options = ("--emulate-steps", "100000000000")
    for word, status in (("exit", 3), ("killed", 128 + 9)):
        ran = run(word, str(tmp_path / word), started=spins, options=options)
        assert ran.status == status, ran.report
        assert has_ended(int((tmp_path / word).read_text()))


def test_gigabytes_are_served_and_given_back(run: Any, spins: Path) -> None:
    def memory() -> set[int]:
        """The files with device memory in them that this process has open."""
        files = [f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd")]
        ours = [os.stat(file) for file in files if os.path.exists(file) and "memfd:drywarp" in os.readlink(file)]
        return {one.st_ino for one in ours if one.st_blocks}

    before = memory()
    ran = run("big", started=spins, options=("--gpu", "a100"))
    assert (ran.status, ran.output) == (0, "1 2\n")
    assert memory() <= before
