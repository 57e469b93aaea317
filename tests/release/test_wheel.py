"""The wheel and the sdist: they hold what the package needs, and a clean environment runs what was installed."""

from __future__ import annotations

import json
import os
import shlex
import site
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

import drywarp
from drywarp.core.build import LIBRARY
from drywarp.core.build import compiler as real_compiler
from drywarp.core.library import library
from tests.effort import exhaustive

pytest.importorskip("build", reason="build is not installed: pip install 'drywarp[test]'")
pytest.importorskip("hatchling", reason="hatchling is not installed: pip install 'drywarp[test]'")

ROOT = Path(__file__).parents[2]
# What would lead back to the checkout, or to another installation.
ASTRAY = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")


def run(*command: str | Path, cwd: Path) -> str:
    environment = {name: value for name, value in os.environ.items() if name not in ASTRAY}
    done = subprocess.run([*map(str, command)], cwd=cwd, env=environment, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def built(source: Path, folder: Path, *what: str, **variables: str) -> None:
    """Build without a network: with the hatchling that is installed here."""
    command = [sys.executable, "-m", "build", "--no-isolation", *what, "--outdir", str(folder), str(source)]
    environment = os.environ | variables
    done = subprocess.run(command, cwd=folder.parent, env=environment, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the sdist, and the wheel that was built from it alone."""
    folder = tmp_path_factory.mktemp("release") / "dist"
    if exhaustive():
        built(ROOT, folder)
        return folder
    # The core takes ten seconds to compile, and was compiled when this checkout was installed: that one is handed over.
    library()
    compiler = folder.parent / "compiler"
    compiler.write_text(
        '#!/bin/sh\nfor last; do case "$last" in */core/native/*) exit ;; */inorder.o) core=1 ;; esac; done\n'
        f'[ -n "$core" ] && exec cp {shlex.quote(str(LIBRARY))} "$last"\n'
        f'exec {shlex.join(real_compiler() or ["cc"])} "$@"\n'
    )
    compiler.chmod(0o755)
    built(ROOT, folder, CC=shlex.quote(str(compiler)))
    return folder


@pytest.fixture(scope="module")
def wheel(made: Path) -> Path:
    (found,) = made.glob("*.whl")
    return found


def unpacked(sdist: Path, folder: Path) -> Path:
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (root,) = folder.iterdir()
    return root


def files_below(folder: Path) -> set[str]:
    """Files that are no leftovers of running the code."""
    every = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)) for path in every if "__pycache__" not in path.parts}


def test_the_wheel_holds_every_file_of_the_package(wheel: Path) -> None:
    """Kernels, headers, templates, schemas and hardware data too, byte for byte; and nothing else."""
    package = ROOT / "src" / "drywarp"
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
        held = {name.removeprefix("drywarp/") for name in names if name.startswith("drywarp/")}
        assert held == files_below(package)
        assert all(archive.read(f"drywarp/{name}") == (package / name).read_bytes() for name in held)
        others = {Path(name).parts[0] for name in names} - {"drywarp"}
        assert others == {f"drywarp-{drywarp.__version__}.dist-info"}
    # One for every kind of data: a check of the list above, which could be empty.
    for name in (
        "py.typed",
        "hardware/data/a100.toml",
        "workload/abstract/papers/example.toml",
        "report/serve/page.html",
    ):
        assert name in held
    assert {Path(name).suffix for name in held} >= {".toml", ".cu", ".h", ".json", ".html", ".css", ".js"}


def test_it_is_one_wheel_for_every_python_and_says_which(wheel: Path) -> None:
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    assert wheel.name == f"drywarp-{drywarp.__version__}-py3-none-{platform}.whl"
    with zipfile.ZipFile(wheel) as archive:
        metadata = archive.read(f"drywarp-{drywarp.__version__}.dist-info/METADATA").decode()
        entries = archive.read(f"drywarp-{drywarp.__version__}.dist-info/entry_points.txt").decode()
    assert "Requires-Python: >=3.11\n" in metadata
    assert "drywarp = drywarp.cli.main:main" in entries


@pytest.mark.exhaustive
def test_the_sdist_builds_the_same_wheel(made: Path, wheel: Path, tmp_path: Path) -> None:
    """`python -m build` makes the wheel from the sdist; from the sources themselves it is the same to the byte."""
    built(ROOT, tmp_path / "dist", "--wheel")
    (direct,) = (tmp_path / "dist").glob("*.whl")
    assert direct.name == wheel.name
    with zipfile.ZipFile(direct) as one, zipfile.ZipFile(wheel) as other:
        assert sorted(one.namelist()) == sorted(other.namelist())
        assert all(one.read(name) == other.read(name) for name in one.namelist())


def test_the_sdist_holds_what_tests_and_documentation_need(made: Path, tmp_path: Path) -> None:
    (sdist,) = made.glob("*.tar.gz")
    root = unpacked(sdist, tmp_path)
    for folder in ("src", "tests", "examples", "docs", "benchmarks", "suite"):
        assert files_below(root / folder) == {name for name in files_below(ROOT / folder) if not name.endswith(".so")}
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE"):
        assert (root / name).read_bytes() == (ROOT / name).read_bytes()


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of a new environment with the wheel in it; its dependencies are those of this one."""
    place = tmp_path_factory.mktemp("clean")
    run(sys.executable, "-m", "venv", "--without-pip", "--copies", place / "venv", cwd=place)
    python = place / "venv" / "bin" / "python"
    options = ["--no-deps", "--no-index", "--no-compile", "--quiet", "--disable-pip-version-check"]
    run(sys.executable, "-m", "pip", "--python", python, "install", *options, wheel, cwd=place)
    (packages,) = (place / "venv").glob("lib/python*/site-packages")
    # Folders named in a .pth file come last, and the .pth files in them, as of an editable checkout, count for nothing.
    ours = dict.fromkeys([sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *site.getsitepackages()])
    (packages / "dependencies.pth").write_text("".join(f"{path}\n" for path in ours))
    return place / "venv" / "bin"


@pytest.fixture
def elsewhere(tmp_path: Path, installed: Path) -> Path:
    """A folder far from the checkout, where what is imported is the wheel."""
    said = run(installed / "python", "-c", "import drywarp; print(drywarp.__file__)", cwd=tmp_path)
    assert installed.parent in Path(said.strip()).parents
    assert ROOT not in Path(said.strip()).parents
    return tmp_path


@pytest.mark.exhaustive
def test_the_commands_of_the_workflow_run(made: Path, installed: Path, elsewhere: Path) -> None:
    """Help, `doctor`, an example of the sdist and a packaged workload, as the workflow of a release tries them."""
    yaml = pytest.importorskip("yaml", reason="PyYAML reads the workflow")
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "wheels.yml").read_text())
    (script,) = (step["run"] for step in workflow["jobs"]["install"]["steps"] if step.get("name") == "Try")
    assert [f"drywarp {verb}" in script for verb in ("--help", "doctor", "analyze", "models")] == [True] * 4
    path = f"{installed}{os.pathsep}{os.environ['PATH']}"
    said = run("env", f"PATH={path}", f"DIST={made}", "TMPDIR=" + str(elsewhere), "bash", "-ec", script, cwd=elsewhere)
    assert drywarp.__version__ in said
    assert "saxpy" in said


def test_the_installed_program_answers_as_the_checkout_does(installed: Path, elsewhere: Path) -> None:
    (elsewhere / "saxpy.cu").write_bytes((ROOT / "examples" / "saxpy.cu").read_bytes())
    answer = json.loads(run(installed / "drywarp", "analyze", "saxpy.cu", "--json", cwd=elsewhere))
    assert answer["kernel"] == "saxpy"
    assert answer["prediction"]["time_s"] == drywarp.analyze(ROOT / "examples" / "saxpy.cu").time_s
    # Fig. 1 and Table 2 of the analysis paper: one warp alone takes 25 cycles.
    models = json.loads(run(installed / "drywarp", "models", "papers/example", "--json", cwd=elsewhere))
    first = models["models"]["pipeline"][0]
    assert (first["occupancy_warps"], first["cycles_per_run"]) == (1, 25.0)
    assert json.loads(run(installed / "drywarp", "doctor", "--json", cwd=elsewhere))["healthy"] is True


@pytest.mark.exhaustive
def test_a_clean_install_fetches_its_own_dependencies(wheel: Path, tmp_path: Path) -> None:
    """Needs a package index."""
    run(sys.executable, "-m", "venv", tmp_path / "venv", cwd=tmp_path)
    programs = tmp_path / "venv" / "bin"
    run(programs / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel, cwd=tmp_path)
    (tmp_path / "saxpy.cu").write_bytes((ROOT / "examples" / "saxpy.cu").read_bytes())
    assert "analyze" in run(programs / "drywarp", "--help", cwd=tmp_path)
    assert json.loads(run(programs / "drywarp", "analyze", "saxpy.cu", "--json", cwd=tmp_path))["kernel"] == "saxpy"
    run(programs / "drywarp", "doctor", cwd=tmp_path)
