"""GPUs of the user's own: added after a check, found by name, removable; no other name changes its meaning."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from drywarp.analysis.several_gpus import chosen_gpus
from drywarp.errors import InputFileError, UsageError
from drywarp.hardware import add_gpu, gpu_names, load_gpu, own_names, remove_gpu
from drywarp.hardware.load import find
from drywarp.hardware.toml_file import DATA
from drywarp.support.folders import own_gpu_folder

from ..cli.command import complaint, run
from .test_user_files import ABSTRACT, FROM, HEAD, SOURCES, write

BODY = f"[device]\nsm_count = {{ value = 54, {FROM} }}\n"
SPELLINGS = [
    "a100",
    "NVIDIA A100-SXM4-80GB",
    "RTX 2080 Ti",
    "rtx-3090",
    "H100",
    "papers/example",
    "NVIDIA GeForce RTX 3080",
]


@pytest.fixture(autouse=True)
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "own"
    monkeypatch.setenv("DRYWARP_GPU_DIR", str(folder))
    return folder


def mine(folder: Path, name: str = "half.toml", head: str = HEAD) -> str:
    return write(folder, head + SOURCES + BODY, name)


def test_added_it_is_found_everywhere_and_removed_it_is_gone(tmp_path: Path, own: Path) -> None:
    before = gpu_names()
    there = load_gpu(mine(tmp_path))
    added = add_gpu(mine(tmp_path))
    assert (added.name, added.file_hash) == ("half", there.file_hash) == ("half", load_gpu("half").file_hash)
    assert (load_gpu("Mine").name, load_gpu("HALF").name) == ("half", "half")  # by its title, in any spelling
    assert (own_names(), sorted({*gpu_names()} - {*before})) == (["half"], ["half"])
    assert "half" in [gpu.name for gpu in chosen_gpus("all")]
    assert remove_gpu("half") == own / "half.toml"
    assert gpu_names() == before
    with pytest.raises(UsageError, match=r"^unknown GPU 'half'"):
        load_gpu("half")


def test_one_of_ones_own_may_inherit_from_another(tmp_path: Path) -> None:
    add_gpu(mine(tmp_path))
    text = 'format = 1\ntitle = "Quarter"\ninherits = "half"\n'
    quarter = add_gpu(write(tmp_path, text, "quarter.toml"))
    assert quarter.fact("device.sm_count").note == "half: measured"
    with pytest.raises(UsageError, match="--remove half: quarter inherits from it; expected a GPU that no other needs"):
        remove_gpu("half")
    remove_gpu("quarter")
    remove_gpu("half")
    assert own_names() == []


def test_one_that_takes_abstract_workloads_only_is_not_ranked(tmp_path: Path) -> None:
    add_gpu(write(tmp_path, ABSTRACT, "toy.toml"))
    assert load_gpu("toy").abstract_only
    assert "toy" not in [gpu.name for gpu in chosen_gpus("all")]


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.one_of(
        st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,11}", fullmatch=True), st.sampled_from([*gpu_names(), *SPELLINGS])
    ),
    st.one_of(st.sampled_from(["Mine", "GPU", *SPELLINGS]), st.from_regex(r"[A-Za-z0-9 ]{1,12}", fullmatch=True)),
)  # fmt: skip
def test_adding_changes_the_meaning_of_no_name(name: str, title: str) -> None:
    """Whatever a file and its GPU are called: it is refused in one line, or every other name means what it meant."""
    before = {text: find(text) for text in SPELLINGS}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{name.replace('/', '_')}.toml"
        path.write_text(f'format = 1\ntitle = "{title}"\ninherits = "a100"\n')
        try:
            added = add_gpu(path)
        except (InputFileError, UsageError):
            added = None
    if added is not None:
        assert find(added.name) == (path.stem, own_gpu_folder() / path.name)
        assert {text: find(text) for text in before} == before
        remove_gpu(added.name)
    assert own_names() == []


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("mine.txt", HEAD, "--add mine.txt: expected a GPU file (.toml)"),
        ("none.toml", None, "GPU file none.toml does not exist"),
        ("a100.toml", HEAD, "--add a100.toml: 'a100' already means the GPU a100; expected another file name"),
        ("RTX-3090.toml", HEAD, "'RTX-3090' already means the GPU rtx3090"),
        ("all.toml", HEAD, "'all' would be the GPU's name; expected letters, digits"),
        ("a,b.toml", HEAD, "'a,b' would be the GPU's name"),
        ("b.toml", HEAD.replace("Mine", "GeForce RTX 3090"), "b.toml:2: title: 'GeForce RTX 3090' already means"),
        ("b.toml", HEAD + 'aliases = "x, RTX 3090"\n', "b.toml:4: aliases: 'RTX 3090' already means the GPU rtx3090"),
        ("b.toml", HEAD.replace('"a100"', '"beside.toml"'), "b.toml:3: inherits: 'beside.toml' would not be found"),
        ("mine.toml", HEAD + BODY, "mine.toml:5: device.sm_count.source: 'mine' is not in [sources]"),
        ("mine.toml", HEAD + "[device]\nsm_count = 3\n", "mine.toml:5: device.sm_count: expected { value = 3"),
    ],
)  # fmt: skip
def test_what_cannot_be_added_is_refused_in_one_line(
    tmp_path: Path, name: str, text: str | None, expected: str
) -> None:
    write(tmp_path, 'format = 1\ntitle = "Beside"\ninherits = "a100"\n', "beside.toml")
    if text is not None:
        write(tmp_path, text, name)
    assert expected in complaint(run("gpus", "--add", name, cwd=tmp_path))
    assert own_names() == []


def test_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DRYWARP_GPU_DIR", str(tmp_path / "file" / "own"))
    with pytest.raises(UsageError, match=r"is not writable \(set DRYWARP_GPU_DIR to use another folder\)"):
        add_gpu(mine(tmp_path))


def test_a_name_that_is_packaged_later_is_not_guessed(tmp_path: Path, own: Path) -> None:
    mine(own.parent)
    own.mkdir()
    (own / "a100.toml").write_text((DATA / "a100.toml").read_text())
    with pytest.raises(
        UsageError, match=r"^GPU 'a100' is also the name of your own file .*a100\.toml; expected another"
    ):
        load_gpu("a100")
    remove_gpu("a100")
    assert load_gpu("a100").name == "a100"


def test_a_broken_file_of_ones_own_is_named_and_can_be_removed(own: Path) -> None:
    own.mkdir()
    (own / "broken.toml").write_text("format = \n")
    with pytest.raises(InputFileError, match=r"broken\.toml:1: not TOML"):
        load_gpu("broken")
    remove_gpu("broken")


# ---- The command


def told(*arguments: str, cwd: Path) -> dict[str, Any]:
    result = run("gpus", *arguments, "--json", cwd=cwd)
    assert (result.returncode, result.stderr) == (0, "")
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_the_command_adds_lists_and_removes(tmp_path: Path, own: Path) -> None:
    mine(tmp_path)
    assert (
        run("gpus", "--add", "half.toml", cwd=tmp_path).stdout == f"half: Mine, added to {own}; use it as --gpu half\n"
    )
    assert run("gpus", cwd=tmp_path).stdout.endswith("with its source. Your own: half.\n")
    assert [gpu["name"] for gpu in told(cwd=tmp_path)["gpus"] if gpu["own"]] == ["half"]
    again = complaint(run("gpus", "--add", "half.toml", cwd=tmp_path))
    assert again.endswith("you already have a GPU half (drywarp gpus --remove half removes it)")
    assert told("--remove", "half", cwd=tmp_path)["removed"] == "half"
    assert complaint(run("gpus", "--remove", "a100", cwd=tmp_path)).endswith("of your own (you have added none)")
    assert told("--add", "half.toml", cwd=tmp_path)["name"] == "half"
    assert run("gpus", "--remove", "half", cwd=tmp_path).stdout == f"half: removed from {own}\n"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("--compare a100", "--compare a100: expected two or more GPUs, as in a100,h100"),
        ("--compare a100,a100", "GPU a100 is named twice"),
        ("--compare a100,h1000", "unknown GPU 'h1000'; nearest: h100"),
        ("a100 --compare a100,h100", "NAME and --compare: expected only one of them"),
        ("--add x.toml --remove x", "--add and --remove: expected only one of them"),
    ],
)
def test_what_cannot_be_compared(tmp_path: Path, line: str, expected: str) -> None:
    assert expected in complaint(run("gpus", *line.split(), cwd=tmp_path))


def test_a_comparison_as_text(tmp_path: Path) -> None:
    """A file that changes one number of the A100: that alone differs, and each side says where it comes from."""
    mine(tmp_path)
    text = run("gpus", "--compare", "a100,half.toml", cwd=tmp_path).stdout
    assert text.startswith(
        "a100: NVIDIA A100 PCIe 40 GB\nhalf: Mine\n\nDifferent (1)\n"
        "key              a100  kind       source       half  kind      source  ratio\n"
        "device.sm_count  108   datasheet  techpowerup  54    measured  mine    0.5\n\nThe same ("
    )
    (row,) = [line for line in text.splitlines() if line.startswith("device.sm_count ")]
    assert row.split() == ["device.sm_count", "108", "datasheet", "techpowerup", "54", "measured", "mine", "0.5"]
    same = [line for line in text.partition("The same (")[2].splitlines() if line.startswith("device.tdp_w ")]
    assert same[0].split() == [
        "device.tdp_w",
        "250",
        "W",
        "datasheet",
        "techpowerup",
        "250",
        "W",
        "inherited",
        "techpowerup",
    ]
    assert [line.split()[0:2] for line in text.splitlines() if "own benchmark" in line] == [["mine", "half"]]


@pytest.mark.parametrize("names", ["a100,h100", "a100,mi300x,papers/example"])
def test_a_comparison_holds_every_fact_of_every_gpu(tmp_path: Path, names: str) -> None:
    found, text = told("--compare", names, cwd=tmp_path), run("gpus", "--compare", names, cwd=tmp_path).stdout
    gpus = [load_gpu(name) for name in names.split(",")]
    assert [gpu["name"] for gpu in found["gpus"]] == [gpu.name for gpu in gpus]
    assert set(found["facts"]) == {key for gpu in gpus for key, _ in gpu.facts()}
    for key, row in found["facts"].items():
        values = [gpu.to_dict()["facts"].get(key) for gpu in gpus]
        assert list(row["by_gpu"].values()) == values
        plain = [None if value is None else value["value"] for value in values]
        assert row["same"] == all(value == plain[0] for value in plain)
        assert f"\n{key} " in text
