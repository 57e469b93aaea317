"""`drywarp doctor`, `drywarp cache`, completion and colour."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from drywarp.cli import doctor
from drywarp.errors import CompileError, ToolError
from drywarp.frontends import cache
from tests.effort import first

from .command import run


def test_doctor_finds_a_working_toolchain(tmp_path: Path) -> None:
    result = run("doctor", "--json", cwd=tmp_path)
    document = json.loads(result.stdout)
    assert document["healthy"]
    assert {p["name"]: p["state"] for p in document["parts"]}["nvrtc"] == "ok"
    assert result.returncode == 0
    assert "nvdisasm" in run("doctor", cwd=tmp_path).stdout
    # The parts for other inputs than CUDA C++ are told of, whether they are there or not.
    extras = {p["name"]: p for p in document["parts"] if p["name"] in ("ptxas", "triton", "numba-cuda")}
    assert len(extras) == 3
    for part in extras.values():
        assert not part["needed"]
        assert part["state"] == "ok" or part["remedy"].startswith("pip install 'drywarp[")


def test_doctor_says_what_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ToolError("nvdisasm cannot be run")

    monkeypatch.setattr(doctor, "disassemble", fail)
    parts = {part.name: part for part in doctor.checkup()}
    assert (parts["nvrtc"].state, parts["nvdisasm"].state) == ("ok", "broken")
    assert parts["nvdisasm"].remedy == "nvdisasm cannot be run"
    assert not doctor.healthy(tuple(parts.values()))


def test_doctor_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise CompileError("NVRTC cannot be loaded")

    monkeypatch.setattr(doctor, "compile_program", fail)
    monkeypatch.setattr(doctor, "tool_versions", lambda: {"nvrtc": "missing", "nvdisasm": "13.5"})
    parts = {part.name: part for part in doctor.checkup()}
    assert parts["nvrtc"].state == "missing"
    assert "pip install" in parts["nvrtc"].remedy


def test_cache_shows_and_clears_only_what_is_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "cache"
    monkeypatch.setenv("DRYWARP_CACHE_DIR", str(folder))
    assert cache.usage().entries == 0
    assert not folder.exists()
    cache.store(cache.key_of("a"), cache.Entry(b"1", "listing", "", {}))
    (folder / "notes.txt").write_text("the user's")
    shown = json.loads(run("cache", "--json", cwd=tmp_path).stdout)
    assert shown["entries"] == 1
    assert shown["bytes"] > 0
    assert "holds 1 kernels" in run("cache", cwd=tmp_path).stdout
    assert json.loads(run("cache", "clear", "--json", cwd=tmp_path).stdout)["entries"] == 1
    assert cache.load(cache.key_of("a")) is None
    assert (folder / "notes.txt").exists()


def test_unknown_action_is_wrong_usage(tmp_path: Path) -> None:
    assert run("cache", "burn", cwd=tmp_path).returncode == 2


def test_shell_completion_is_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Which shell runs the tests is not what is tested: the option then takes its name.
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    assert "_drywarp_completion" in run("--show-completion", "bash", cwd=tmp_path).stdout


@pytest.mark.parametrize("variable", first(["NO_COLOR", "TERM"]))
def test_no_escape_codes_where_none_are_wanted(variable: str, tmp_path: Path) -> None:
    environment = {**os.environ, "FORCE_COLOR": "1", variable: "1" if variable == "NO_COLOR" else "dumb"}
    if variable == "TERM":
        del environment["FORCE_COLOR"]
    command = [sys.executable, "-m", "drywarp", "gpus"]
    text = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=True).stdout
    assert "\x1b[3" not in text
