"""The workflow of docs/ci.md: it parses, and its steps do what the page says."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml", reason="PyYAML reads the workflow")

ROOT = Path(__file__).parents[2]
SLOWER = "y[i] = a * x[i] + y[i] / 3 / x[(i * 4099u) % n]"


@pytest.fixture(scope="module")
def workflow() -> dict[str, Any]:
    (text,) = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / "ci.md").read_text(), re.DOTALL)
    made: dict[str, Any] = yaml.safe_load(text)
    return made


def steps(workflow: dict[str, Any], *jobs: str) -> list[dict[str, Any]]:
    """The steps of these jobs, or of all."""
    return [step for job in jobs or workflow["jobs"] for step in workflow["jobs"][job]["steps"]]


def test_it_is_a_workflow(workflow: dict[str, Any]) -> None:
    # YAML 1.1 reads a bare `on` as true.
    assert set(workflow) == {"name", True, "permissions", "env", "jobs"}
    assert set(workflow[True]) == {"pull_request"}
    for job in workflow["jobs"].values():
        assert job["runs-on"].startswith("ubuntu-")
    for step in steps(workflow):
        assert set(step) <= {"uses", "with", "name", "id", "env", "if", "run"}
        assert ("uses" in step) != ("run" in step)
        if "uses" in step:
            assert re.fullmatch(r"[\w-]+/[\w-]+@v\d+", step["uses"])


def test_what_reads_the_pull_request_may_write_nothing(workflow: dict[str, Any]) -> None:
    """No write permission, secret or token is in the job that checks out; the one that comments takes no code."""
    assert workflow["permissions"] == {}
    assert {name: job["permissions"] for name, job in workflow["jobs"].items()} == {
        "compare": {"contents": "read"},
        "comment": {"pull-requests": "write"},
    }
    reads, comments = steps(workflow, "compare"), steps(workflow, "comment")
    (checkout,) = (step for step in reads if step.get("uses", "").startswith("actions/checkout@"))
    assert checkout["with"]["persist-credentials"] is False
    assert "secrets." not in str(workflow)
    assert "github.token" not in str(reads)
    assert [step["uses"].split("@")[0] for step in comments if "uses" in step] == ["actions/download-artifact"]
    assert [step["name"] for step in comments if "run" in step] == ["Comment"]


def test_the_comment_is_what_the_other_job_uploads(workflow: dict[str, Any]) -> None:
    names = [step["name"] for step in steps(workflow, "compare") if "run" in step]
    assert names[-1] == "Gate"  # a job that has failed has uploaded before
    (put,) = (step for step in steps(workflow) if step.get("uses", "").startswith("actions/upload-artifact@"))
    (get,) = (step for step in steps(workflow) if step.get("uses", "").startswith("actions/download-artifact@"))
    assert put["with"]["name"] == get["with"]["name"]
    (script,) = (step["run"] for step in steps(workflow, "comment") if "run" in step)
    assert script.count(f"body=@{Path(put['with']['path']).name}") == 2
    assert workflow["jobs"]["comment"]["needs"] == "compare"
    assert "head.repo.full_name == github.repository" in workflow["jobs"]["comment"]["if"]
    assert "!cancelled()" in workflow["jobs"]["comment"]["if"]


def test_no_script_holds_an_expression(workflow: dict[str, Any]) -> None:
    """What a pull request names reaches scripts through the environment, never as their text."""
    for step in steps(workflow):
        assert "${{" not in step.get("run", "")


def test_every_script_is_bash(workflow: dict[str, Any]) -> None:
    for step in steps(workflow):
        if "run" in step:
            done = subprocess.run(["bash", "-n", "-c", step["run"]], capture_output=True, text=True, timeout=300)
            assert done.returncode == 0, done.stderr


def _git(folder: Path, *arguments: str) -> str:
    own = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    command = ["git", *own, *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, timeout=300)
    return done.stdout.strip()


@pytest.mark.exhaustive
@pytest.mark.skipif(shutil.which("git") is None, reason="git makes the pull request")
def test_the_compare_step_reports_and_fails(workflow: dict[str, Any], tmp_path: Path) -> None:
    """A pull request with a slower kernel, one that does not compile, one that is new, and one without a launch."""
    saxpy = (ROOT / "examples" / "saxpy.cu").read_text()
    repository, tools = tmp_path / "work" / "repo", tmp_path / "bin"
    repository.mkdir(parents=True)
    tools.mkdir()
    command = tools / "drywarp"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m drywarp "$@"\n')
    command.chmod(0o755)
    _git(repository, "init", "--quiet")
    for name in ("a b.cu", "broken.cu", "untouched.cu"):
        (repository / name).write_text(saxpy)
    (repository / "helper.cu").write_text("__device__ int f() { return 1; }\n")
    _git(repository, "add", "-A")
    _git(repository, "commit", "--quiet", "-m", "base")
    base = _git(repository, "rev-parse", "HEAD")
    changed = re.sub(r"y\[i\] = [^;]+", SLOWER, saxpy)
    assert changed != saxpy
    (repository / "a b.cu").write_text(changed)
    (repository / "broken.cu").write_text(saxpy.replace("y[i] =", "y[i] = undefined_name +"))
    (repository / "new.cu").write_text(saxpy)
    (repository / "helper.cu").write_text("__device__ int f() { return 2; }\n")
    _git(repository, "add", "-A")
    _git(repository, "commit", "--quiet", "-m", "change")
    (step,) = (step for step in steps(workflow) if step.get("id") == "compare")
    given = {**workflow["env"], "BASE": base, "GITHUB_STEP_SUMMARY": "../summary.md", "GITHUB_OUTPUT": "../output"}
    environment = {**os.environ, **{k: str(v) for k, v in given.items()}, "GPUS": "a100", "RUNNER_TEMP": str(tmp_path)}
    environment["PATH"] = f"{tools}:{environment['PATH']}"
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", step["run"]],
        cwd=repository, env=environment, capture_output=True, text=True, timeout=900,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    comment = (tmp_path / "drywarp-comment.md").read_text()
    assert comment.startswith("<!-- drywarp -->\n")
    assert comment.count("### ") == 1
    assert "slower on <code>a100</code>" in comment
    assert "a b&#46;cu" in comment
    assert "undefined_name" in comment
    assert "untouched" not in comment
    assert "helper" not in comment
    assert (repository.parent / "output").read_text() == "status=2\n"
    assert (repository.parent / "summary.md").read_text() == comment
