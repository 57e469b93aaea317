"""The workflow that makes a release: it parses, tries what it claims to, and publishes for a tag alone."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml", reason="PyYAML reads the workflow")

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def workflow() -> dict[str, Any]:
    made: dict[str, Any] = yaml.safe_load((ROOT / ".github" / "workflows" / "wheels.yml").read_text())
    return made


@pytest.fixture(scope="module")
def steps(workflow: dict[str, Any]) -> list[dict[str, Any]]:
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def test_it_is_a_workflow(workflow: dict[str, Any], steps: list[dict[str, Any]]) -> None:
    # YAML 1.1 reads a bare `on` as true.
    assert set(workflow) == {"name", True, "permissions", "jobs"}
    for job in workflow["jobs"].values():
        assert set(job) <= {"if", "needs", "strategy", "runs-on", "environment", "permissions", "steps"}
    for step in steps:
        assert set(step) <= {"uses", "with", "name", "env", "run"}
        assert ("uses" in step) != ("run" in step)
        if "uses" in step:
            assert re.fullmatch(r"[\w-]+/[\w-]+@(release/)?v\d+", step["uses"])


def test_scripts_are_bash_and_hold_no_expression(steps: list[dict[str, Any]]) -> None:
    """The name of a tag reaches scripts through the environment, never as their text."""
    scripts = [step["run"] for step in steps if "run" in step]
    assert len(scripts) == 4
    for script in scripts:
        assert "${{" not in script
        done = subprocess.run(["bash", "-n", "-c", script], capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr


def test_the_wheel_is_tried_on_every_python_that_the_package_names(workflow: dict[str, Any]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = re.findall(r"Python :: (3\.\d+)", " ".join(project["classifiers"]))
    matrix = workflow["jobs"]["install"]["strategy"]["matrix"]
    assert matrix["python"] == named
    assert project["requires-python"] == f">={named[0]}"
    assert matrix["os"] == ["ubuntu-24.04", "ubuntu-24.04-arm"]


def test_a_tag_alone_publishes_after_everything_else(workflow: dict[str, Any]) -> None:
    jobs = workflow["jobs"]
    publishing = [name for name, job in jobs.items() if any("publish" in s.get("uses", "") for s in job["steps"])]
    assert publishing == ["publish"]
    assert jobs["publish"]["if"] == "github.event_name == 'push' && startsWith(github.ref, 'refs/tags/v')"
    assert (jobs["publish"]["needs"], jobs["install"]["needs"]) == ("install", "build")
    # Only that job may ask for a token of identity, and nothing may write to the repository.
    assert workflow["permissions"] == {"contents": "read"}
    assert {name: job["permissions"] for name, job in jobs.items() if "permissions" in job} == {
        "publish": {"id-token": "write"}
    }
    assert workflow[True]["push"] == {"tags": ["v*"]}


@pytest.mark.parametrize(("tag", "status"), [("v1.2.3", 0), ("v1.2.4", 1), ("1.2.3", 0)])
def test_a_tag_of_another_version_is_refused(workflow: dict[str, Any], tmp_path: Path, tag: str, status: int) -> None:
    (step,) = (step for step in workflow["jobs"]["publish"]["steps"] if "run" in step)
    (tmp_path / "dist").mkdir()
    for processor in ("x86_64", "aarch64"):
        (tmp_path / "dist" / f"drywarp-1.2.3-py3-none-manylinux_2_28_{processor}.whl").touch()
    done = subprocess.run(["bash", "-e", "-c", step["run"]], cwd=tmp_path, env={"TAG": tag}, timeout=300)
    assert done.returncode == status
