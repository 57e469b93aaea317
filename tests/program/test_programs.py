"""Whole programs, as nvcc builds them: what they compute, what they are told, and what is reported."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import drywarp
from drywarp.core.library import cuda_library
from drywarp.frontends.cuda import CudaOptions
from drywarp.frontends.cuda.compile import compile_translation
from drywarp.frontends.cuda.nvrtc import gather
from tests.effort import first

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_results_are_those_of_a_gpu(run: Any) -> None:
    ran = run("results")
    assert (ran.status, ran.output) == (0, "sum 499820\n")
    kernels = {one["kernel"]: one for one in ran.result["kernels"]}
    assert {name.partition("(")[0] for name in kernels} == {"scale", "add_up"}
    assert all(one["launches"] == one["computed"] == 1 and one["time_s"] > 0 for one in kernels.values())
    assert {one["kind"]: one["bytes"] for one in ran.result["copies"]} == {
        "copy to device": 4004,
        "copy to host": 4004,
    }
    assert ran.result["time_s"] >= ran.result["busy_s"] > 0
    assert "2 of 2 launches were emulated in full" in ran.report


@pytest.mark.parametrize("before", [(), ("--",)], ids=["plain", "dashes"])
def test_everything_after_the_program_is_the_programs(program: Path, before: tuple[str, ...]) -> None:
    given = ["words", "--size", "4", "--gpu", "none", "--", "--help", "-o"]
    words = [sys.executable, "-m", "drywarp", "run", "--gpu", "h100", *before, str(program), *given]
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout.split()) == (0, given[1:])
    assert "NVIDIA H100" in ended.stderr


@pytest.mark.usefixtures("program")
@pytest.mark.parametrize("given", first([["--", "32"], ["32"]]), ids=str)
def test_dashes_may_stand_after_a_source(given: list[str]) -> None:
    source = EXAMPLES / "programs" / "heat.cu"
    words = [sys.executable, "-m", "drywarp", "run", str(source), *given]
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert re.search(r"copy to device +2 .* 4\.00 KiB", ended.stderr)  # 32 x 32 floats


RACE = """
#include <cuda_runtime.h>
__global__ void turn(int* a) {
  __shared__ int s[64];
  s[threadIdx.x] = a[threadIdx.x];
  BARRIER
  a[threadIdx.x] = s[(threadIdx.x + 33) % 64];
}
int main() {
  int* a;
  cudaMalloc(&a, 256);
  FILL
  turn<<<1, 64>>>(a);
  return cudaDeviceSynchronize();
}
"""


@pytest.mark.parametrize(
    ("barrier", "fill", "kinds"),
    [
        ("", "", {"race": [64], "uninitialized": [64]}),
        ("__syncthreads();", "cudaMemset(a, 0, 256);", {}),
    ],
)
def test_a_check_finds_races_and_unwritten_memory(
    run: Any, barrier: str, fill: str, kinds: dict[str, list[int]], tmp_path: Path
) -> None:
    source = tmp_path / "race.cu"
    source.write_text(RACE.replace("BARRIER", barrier).replace("FILL", fill))
    ran = run(options=("--check", "--gpu", "a100"), started=source)
    assert ran.status == bool(kinds)
    found = ran.result["check"]["problems"]
    assert {one["kind"]: [one["times"]] for one in found} == kinds
    assert ("check: no problems" in ran.report) == (not kinds)


def test_the_heat_of_a_whole_program_is_free_of_faults(run: Any) -> None:
    """Its wave of many blocks fills the record of accesses again and again."""
    ran = run(options=("--check", "--gpu", "a100"), started=EXAMPLES / "programs" / "heat.cu")
    assert (ran.status, ran.result["check"]["count"]) == (0, 0)


def test_a_page_shows_the_timeline_and_what_is_behind_each_kernel(run: Any, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    ran = run("graph", options=("--html", str(page), "--keep", str(tmp_path / "kept")))
    assert ran.status == 0
    text = page.read_text()
    assert "drywarp analyze 0000-scale.launch" in text
    for expected in ("scale", "copy to device", "Utilization of each part of the GPU", "speedup", "stream 0x"):
        assert expected in text


def test_a_stripped_shared_build_works_and_a_stripped_static_one_says_how_to_relink(
    run: Any, program: Path, tmp_path: Path
) -> None:
    stripped = tmp_path / "stripped"
    subprocess.run(["strip", "-o", str(stripped), str(program)], check=True)
    ran = run("results", started=stripped)
    assert ran.status == 2
    assert ran.report.strip().splitlines()[-1].startswith(f"drywarp: {stripped} ended with status")
    assert "-cudart shared" in ran.report


def test_errors_come_as_from_the_runtime(run: Any) -> None:
    ran = run("errors")
    assert ran.output.splitlines() == [
        "cudaErrorMemoryAllocation",
        "cudaErrorInvalidValue",
        "cudaErrorInvalidConfiguration",
        "cudaSuccess",
        "cudaSuccess",
        "an illegal memory access was encountered",
    ]
    (fault,) = ran.result["faults"]
    assert "beyond" in fault["kernel"]
    assert "out of bounds" in fault["text"]
    assert "fault: launch" in ran.report


def test_textures_and_surfaces_over_arrays_rows_and_lines(run: Any) -> None:
    ran = run("textures")
    assert (ran.status, ran.output) == (0, "")
    (fault,) = ran.result["faults"]
    assert "no texture object has the handle" in fault["text"]


def test_kernels_reach_host_memory_that_was_registered(run: Any, tmp_path: Path) -> None:
    ran = run("registered", options=("--keep", str(tmp_path / "kept")))
    assert ran.status == 0
    device, own = ran.result["launches"]
    assert device["time_s"] == own["time_s"]
    for one in (device, own):
        found = drywarp.analyze(tmp_path / "kept" / one["kept"])
        assert found.time_s == one["time_s"]
        # 20,000 bytes are read over the bus and written back.
        assert any(note.startswith("39.1 KiB cross the bus to host memory") for note in found.notes)
        assert found.memory.dram_bytes == 0


def test_what_device_code_prints_comes_when_the_host_waits(run: Any) -> None:
    ran = run("prints")
    lines = [f"thread {n} of block {block}: {1.5 * n:5.2f}%" for block in (0, 1) for n in (0, 1)]
    assert ran.output.splitlines() == ["before", "launched", *lines, "waited", *lines, "cudaErrorAssert"]
    (fault,) = ran.result["faults"]
    assert "assertion `threadIdx.x != n` (line " in fault["text"]
    assert fault["text"].endswith("failed in block (0, 0, 0) thread (40, 0, 0)")


def test_no_thread_stays_behind(run: Any) -> None:
    before = set(threading.enumerate())
    assert run("streams").status == 0
    assert not {thread.name for thread in set(threading.enumerate()) - before if "_accept" in thread.name}


def test_streams_run_beside_each_other(run: Any) -> None:
    one, both = map(float, run("streams").output.split())
    assert one > 0.1
    assert one < both < 1.5 * one


def test_the_hosts_clock_shows_predicted_time_if_asked(run: Any) -> None:
    emulating, device = map(float, run("clocks").output.split())
    assert emulating > 10 * device > 1
    host, again = map(float, run("clocks", options=("--virtual-clock",)).output.split())
    assert again == device
    # What the program itself takes is real time, and may be long on a busy machine.
    assert device < host < emulating / 2


def test_a_graph_runs_what_was_captured(run: Any) -> None:
    ran = run("graph")
    assert ran.status == 0
    (kernel,) = ran.result["kernels"]
    assert kernel["launches"] == 3


def test_a_graph_is_built_and_changed_node_by_node(run: Any, more: Path) -> None:
    ran = run("nodes", started=more)
    assert (ran.status, ran.output) == (0, "105 207 105 cudaErrorGraphExecUpdateFailure 114 said 4 107\n")


def test_a_capture_goes_on_in_streams_that_wait_for_it(run: Any, more: Path) -> None:
    assert run("forked", started=more).output == "133\n"


def test_results_that_were_not_computed_are_named(run: Any) -> None:
    ran = run("results", options=("--emulate-steps", "0"))
    assert ran.status == 1
    assert all(one["computed"] == 0 and one["time_s"] > 0 for one in ran.result["kernels"])
    found = " ".join(ran.result["findings"])
    assert "not computed: launch 0" in found
    assert "1 copy to the host of results that were not computed: launch 0" in found
    assert "never written" not in found


def test_what_is_computed_from_missing_results_is_missing(run: Any) -> None:
    ran = run("chain", options=("--emulate-steps", "10000"))
    assert [one["computed"] for one in ran.result["launches"]] == [False, True]
    found = " ".join(ran.result["findings"])
    assert "given results that were not computed: launch 1 (scale)" in found
    assert "1 copy to the host of results that were not computed: launch 1 (scale)" in found


def test_memory_that_the_host_changes_is_never_taken_for_what_it_was(run: Any) -> None:
    assert run("passed on").status == 0


def test_copies_of_what_nobody_wrote_are_named(run: Any) -> None:
    assert "1 copy from memory that was never written: allocation 1" in run("unset").result["findings"][0]


def test_a_forked_child_gets_the_error_that_a_driver_gives(run: Any) -> None:
    assert run("fork").status == 0


def test_the_exit_status_is_the_programs(run: Any) -> None:
    ran = run("nothing of these")
    assert ran.status == 9
    assert ran.report.lstrip().startswith("no kernel was launched")
    assert run("abort").status == 128 + 6


def test_calls_that_are_not_known_are_told_and_fail(run: Any) -> None:
    ran = run("unknown")
    assert ran.status == 0
    calls = ("cudaDeviceGraphMemTrim", "cudaIpcGetMemHandle", "cudaMallocMipmappedArray")
    assert ran.result["not_modelled"] == dict.fromkeys(calls, 1)
    assert f"not modelled: {', '.join(f'{name} (1)' for name in calls)}" in ran.report


def test_texture_references_are_told_and_fail(run: Any, tmp_path: Path) -> None:
    """Programs of CUDA 11 and older register them before `main`; newer headers no longer declare what they call."""
    source = tmp_path / "references.c"
    source.write_text(
        "int __cudaRegisterTexture(void **, void *, void **, char *, int, int, int);\n"
        "int cudaBindTexture(unsigned long *, void *, void *, void *, unsigned long), cudaGetDeviceCount(int *);\n"
        "int main() { int n; __cudaRegisterTexture(0, 0, 0, 0, 1, 0, 0);"
        " return cudaGetDeviceCount(&n) || cudaBindTexture(0, 0, 0, 0, 4) != 801; }\n"
    )
    made = tmp_path / "references"
    subprocess.run(["gcc", "-o", str(made), str(source), str(cuda_library())], check=True, capture_output=True)
    ran = run(started=made)
    assert ran.status == 0, ran.report
    assert ran.result["not_modelled"] == {"__cudaRegisterTexture": 1, "cudaBindTexture": 1}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--", "no-such-program"], "no-such-program: no such program (expected"),
        (["--", "missing.cu"], "missing.cu: no such file (expected a CUDA C++ source or a program)"),
        (["-D", "N=1", "--", "true"], "-DN=1: true is not built (expected a .cu file for compiler options)"),
        (["--gpu", "mi300x", "--", "true"], "GPU mi300x: drywarp run needs an NVIDIA GPU from Volta on"),
        (["--clock", "1", "--", "true"], "clock 1 MHz: expected"),
        (["--emulate-steps", "-1", "--", "true"], "--emulate-steps -1: expected a number of warp instructions"),
        (["--json", "no/folder/x", "--", "true"], "no/folder/x: its folder does not exist"),
    ],
)
def test_bad_input(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    from drywarp.cli.main import run as command

    assert command(["run", *words]) == 2
    assert capsys.readouterr().err.startswith(f"drywarp: {said}")


@pytest.mark.parametrize("form", ["cubin", "ptx"])
def test_libraries_that_load_the_driver(run: Any, form: str, tmp_path: Path) -> None:
    image = tmp_path / f"image.{form}"
    if form == "cubin":
        translation = gather((EXAMPLES / "saxpy.cu").read_text(), "saxpy.cu", EXAMPLES, [])
        image.write_bytes(compile_translation(translation, "sm_80", [], CudaOptions()).cubin)
    else:
        image.write_bytes((EXAMPLES / "axpy.ptx").read_bytes())
    kernel = ("_Z5saxpyifPKfPf", "naxy") if form == "cubin" else ("axpy", "xyan")
    ran = run(str(image), *kernel, started=Path(__file__).parent / "driver.py")
    # Of the sizes up to 768, 512 is the largest with which 2,048 threads are resident on each of the 108 SMs.
    # An attribute that CUDA 13.0 does not have is refused; a launch with too much shared memory fails, which is no
    # error of the runtime's.
    said = ["damaged: 209", "missing: 500", "attributes: 1 0", "fills: 432 512", "too much: 1", "runtime: 0"]
    said += ["NVIDIA A100 PCIe 40 GB right True"]
    assert ran.output.splitlines() == said, ran.report
    assert ran.status == 0
    assert [one["computed"] for one in ran.result["kernels"]] == [1]


def test_a_library_with_the_static_runtime_that_is_loaded_later(run: Any, tmp_path: Path) -> None:
    from .conftest import nvcc

    source, library, loads = tmp_path / "late.cu", tmp_path / "late.so", tmp_path / "loads.py"
    source.write_text(LATE)
    compiler = nvcc()
    assert compiler is not None
    words = [*compiler, "-arch=sm_80", "-shared", "-Xcompiler", "-fPIC", "-o", str(library), str(source)]
    subprocess.run(words, check=True, capture_output=True)
    loads.write_text(f"import ctypes\nprint(ctypes.CDLL({str(library)!r}).seven_times(6))\n")
    ran = run(started=loads)
    assert (ran.status, ran.output) == (0, "42\n")


LATE = """
__global__ void times(int* at, int by) { *at *= by; }
extern "C" int seven_times(int number) {
  int* at;
  cudaMallocManaged(&at, sizeof *at);
  *at = number;
  times<<<1, 1>>>(at, 7);
  return cudaDeviceSynchronize() ? -1 : *at;
}
"""


@pytest.mark.parametrize("ended_by", ["SIGTERM", "SIGKILL"])
def test_nothing_remains_of_a_run_that_is_ended(program: Path, ended_by: str, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "drywarp", "run", "--", str(program), "sleep", str(tmp_path / "began")],
        stderr=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    while not (tmp_path / "began").exists():
        assert process.poll() is None
        time.sleep(0.05)
    child = int((tmp_path / "began").read_text())
    process.send_signal(getattr(signal, ended_by))
    _, said = process.communicate()
    if ended_by == "SIGTERM":
        assert process.returncode == 130
        assert said.decode() == "drywarp: interrupted after 0 launches; the program was stopped\n"
        assert list(tmp_path.iterdir()) == [tmp_path / "began"]
    for _ in range(100):
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, 0)
            time.sleep(0.05)
            continue
        break
    else:
        pytest.fail("the program still runs")


def test_sources_are_built_with_the_options_of_nvcc(tmp_path: Path, run: Any) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "own.h").write_text("#define FACTOR 3.0f\n")
    (tmp_path / "scaled.cu").write_text(
        "#include <cstdio>\n#include <own.h>\n"
        "__global__ void scale(float* x) { x[threadIdx.x] *= FACTOR; }\n"
        "int main() {\n  float one = 2, *x;\n  cudaMalloc(&x, 4);\n"
        "  cudaMemcpy(x, &one, 4, cudaMemcpyHostToDevice);\n  scale<<<1, THREADS>>>(x);\n"
        '  cudaMemcpy(&one, x, 4, cudaMemcpyDeviceToHost);\n  std::printf("%g\\n", one);\n}\n'
    )
    options = ("-I", str(tmp_path / "own"), "-D", "THREADS=1", "--compiler-option=-Xcompiler -Wall -lm")
    ran = run(started=tmp_path / "scaled.cu", options=options)
    assert (ran.status, ran.output) == (0, "6\n"), ran.report
    assert [kernel["launches"] for kernel in ran.result["kernels"]] == [1]


def test_parameters_of_more_than_four_kilobytes_arrive(run: Any, tmp_path: Path) -> None:
    """The compiler states their sizes in another attribute, as they no longer fit the usual one."""
    source = tmp_path / "large.cu"
    source.write_text(
        "#include <cstdio>\nstruct Many { int number[8000]; };\n"
        "__global__ void pick(const __grid_constant__ Many many, int* out) {\n"
        "  out[threadIdx.x] = many.number[threadIdx.x * 250];\n}\n"
        "int main() {\n  static Many many;\n  int *out, host[32];\n"
        "  for (int n = 0; n < 8000; n++) many.number[n] = 3 * n;\n  cudaMalloc(&out, sizeof host);\n"
        "  pick<<<1, 32>>>(many, out);\n  cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost);\n"
        '  std::printf("%d %d\\n", host[1], host[31]);\n}\n'
    )
    ran = run(started=source)
    assert (ran.status, ran.output) == (0, "750 23250\n"), ran.report
