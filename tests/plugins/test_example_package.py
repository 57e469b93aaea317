"""The package of examples/plugin, installed beside drywarp: what it adds is there, and a broken one is named."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "plugin"
EXAMPLES = EXAMPLE.parent


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder of installed packages: what pip makes of the example."""
    folder = tmp_path / "site"
    shutil.copytree(EXAMPLE / "drywarp_example", folder / "drywarp_example")
    install(folder, tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]["entry-points"])
    return folder


def install(folder: Path, points: dict[str, dict[str, str]]) -> None:
    info = folder / "drywarp_example-0.1.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: drywarp-example\nVersion: 0.1\n")
    lines = [
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in of.items()) for group, of in points.items()
    ]
    (info / "entry_points.txt").write_text("\n".join(lines))


def drywarp(site: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-m", "drywarp", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_the_model_answers_beside_all_others(site: Path) -> None:
    ran = drywarp(site, "models", "papers/example", "--json")
    assert ran.returncode == 0, ran.stderr
    models = json.loads(ran.stdout)["models"]
    # Six instructions a warp, one a cycle.
    assert {point["warps_per_cycle"] for point in models["issue_only"]} == {1 / 6}
    assert "volkov" in models


def test_the_rule_is_listed_and_explained(site: Path) -> None:
    ran = drywarp(site, "explain", "conversions")
    assert ran.returncode == 0, ran.stderr
    assert "Convert once, outside the loop" in " ".join(ran.stdout.split())


def test_the_gpu_and_the_format_are_known(site: Path, tmp_path: Path) -> None:
    text = (EXAMPLES / "saxpy.cu").read_text()
    (tmp_path / "saxpy.cu.in").write_text(text.replace("float a", "{{float}} a"))
    ran = drywarp(site, "analyze", str(tmp_path / "saxpy.cu.in"), "--gpu", "rtx3080-lab", "--json")
    assert ran.returncode == 0, ran.stderr
    answer = json.loads(ran.stdout)
    assert answer["gpu"] == "rtx3080-lab"
    assert answer["assumptions"]["clock_hz"] == 1.5e9


def test_without_the_package_none_of_it_is_known(tmp_path: Path) -> None:
    ran = drywarp(tmp_path, "gpus", "rtx3080-lab")
    assert ran.returncode == 2
    assert "unknown GPU 'rtx3080-lab'" in ran.stderr


def test_a_broken_entry_point_is_named_with_its_package(site: Path) -> None:
    install(site, {"drywarp.rules": {"conversions": "drywarp_example.rule:Gone"}})
    ran = drywarp(site, "explain")
    assert ran.returncode == 2
    assert len(ran.stderr.strip().splitlines()) == 1
    assert "drywarp-example: entry point drywarp.rules: conversions" in ran.stderr


@pytest.mark.parametrize(
    ("group", "value", "command"),
    [
        ("formats", "drywarp_example.rule:Conversions", "analyze {saxpy}"),
        ("gpus", "drywarp_example.model:IssueOnly", "gpus"),
    ],
)
def test_what_is_of_another_kind_is_named(site: Path, group: str, value: str, command: str) -> None:
    install(site, {f"drywarp.{group}": {"mine": value}})
    ran = drywarp(site, *command.format(saxpy=EXAMPLES / "saxpy.cu").split())
    assert ran.returncode == 2
    assert len(ran.stderr.strip().splitlines()) == 1
    assert f"entry point drywarp.{group}: mine: expected a " in ran.stderr


def test_a_module_may_register_several_models(site: Path) -> None:
    install(site, {"drywarp.models": {"all_of_mine": "drywarp_example.model"}})
    ran = drywarp(site, "models", "papers/example", "--json")
    assert ran.returncode == 0, ran.stderr
    assert "issue_only" in json.loads(ran.stdout)["models"]
    assert "all_of_mine" not in json.loads(ran.stdout)["models"]
