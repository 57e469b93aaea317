"""Files of the user's: inheritance, and one clear line for everything that can be wrong with one."""

from __future__ import annotations

from pathlib import Path

import pytest

from drywarp.errors import InputFileError, UsageError
from drywarp.hardware import Gpu, gpu_names, limits_of, load_gpu
from drywarp.hardware.checks import check_classes
from drywarp.hardware.fact import classes_of

HEAD = 'format = 1\ntitle = "Mine"\ninherits = "a100"\n'
SOURCES = '[sources]\nmine = "own benchmark"\n'
FROM = 'source = "mine", kind = "measured"'

ABSTRACT = f"""format = 1
title = "Toy"
{SOURCES}[scheduler]
partitions = {{ value = 1, {FROM} }}
policy = {{ value = "oldest_first", {FROM} }}
in_order = {{ value = true, {FROM} }}
[subsystems]
pipe = {{ scope = "sm" }}
[classes.op]
subsystem = "pipe"
lambda = {{ value = 1.5, {FROM} }}
latency = {{ value = 4, {FROM} }}
"""


def write(folder: Path, text: str, name: str = "mine.toml") -> str:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return str(path)


def load(folder: Path, body: str) -> Gpu:
    return load_gpu(write(folder, HEAD + SOURCES + body))


def test_a_file_may_change_a_packaged_gpu(tmp_path: Path) -> None:
    gpu = load(tmp_path, f"[memory.dram]\nread_gbs = {{ value = 1450, {FROM} }}\n")
    assert (gpu.name, gpu.title, gpu.arch) == ("mine", "Mine", "sm_80")
    assert gpu.memory.dram.read_gbs == 1450
    assert gpu.memory.dram.peak_gbs == 1555
    own, taken, chip = (gpu.fact(k) for k in ("memory.dram.read_gbs", "memory.dram.peak_gbs", "memory.l1.latency"))
    assert (own.kind, own.file) == ("measured", "mine")
    assert (taken.kind, taken.file, taken.note) == ("inherited", "a100", "a100: datasheet")
    assert (chip.kind, chip.file) == ("measured", "arch/ga100")


def test_inheriting_twice_names_the_first_who_said_it(tmp_path: Path) -> None:
    write(tmp_path, HEAD + SOURCES + f"[device]\nsm_count = {{ value = 54, {FROM} }}\n", "half.toml")
    gpu = load_gpu(write(tmp_path, 'format = 1\ntitle = "Quarter"\ninherits = "half.toml"\n'))
    assert gpu.device.sm_count == 54
    assert gpu.title == "Quarter"
    assert gpu.fact("device.sm_count").note == "half: measured"
    assert gpu.fact("device.base_clock_mhz").note == "a100: datasheet"


def test_an_architecture_of_ones_own_is_not_a_gpu(tmp_path: Path) -> None:
    write(tmp_path, ABSTRACT, "arch/toy.toml")
    gpu = load_gpu(write(tmp_path, 'format = 1\ntitle = "Toy 1"\ninherits = "arch/toy.toml"\n'))
    assert gpu.fact("classes.op.lambda").kind == "measured"


def test_two_parents_and_what_they_share(tmp_path: Path) -> None:
    """The later parent wins, and what both build on is said once, before them."""
    write(tmp_path, ABSTRACT, "arch/toy.toml")
    for name, latency in (("slow", 9), ("fast", 2)):
        body = f"[classes.op]\nlatency = {{ value = {latency}, {FROM} }}\n"
        write(tmp_path, f'format = 1\ntitle = "{name}"\ninherits = "toy.toml"\n' + body, f"arch/{name}.toml")
    text = 'format = 1\ntitle = "Both"\ninherits = ["arch/slow.toml", "arch/fast.toml"]\n'
    gpu = load_gpu(write(tmp_path, text))
    assert (gpu.classes["op"].latency, gpu.classes["op"].lambda_) == (2, 1.5)
    turned = text.partition("inherits")[0] + 'inherits = ["arch/fast.toml", "arch/slow.toml"]\n'
    reverse = load_gpu(write(tmp_path, turned))
    assert reverse.classes["op"].latency == 9


def test_a_gpu_of_another_compute_capability_takes_its_limits(tmp_path: Path) -> None:
    text = 'format = 1\ntitle = "Orin"\ninherits = ["a100", "cc/8.7"]\narch = "sm_87"\n'
    gpu = load_gpu(write(tmp_path, text))
    assert (gpu.compute_capability, gpu.occupancy.max_warps_per_sm, gpu.compiled_for_another) == ("8.7", 48, False)
    assert gpu.occupancy == limits_of("8.7")
    assert gpu.fact("occupancy.max_warps_per_sm").kind == "documented"


def test_parameters(tmp_path: Path) -> None:
    gpu = load_gpu(write(tmp_path, ABSTRACT + f"[parameters]\nmshrs = {{ value = 64, {FROM} }}\n"))
    assert (gpu.parameters.mshrs, gpu.parameter("mshrs"), gpu.parameters.clock_mhz) == (64, 64, None)
    with pytest.raises(UsageError, match=r"^GPU mine has no value for parameters\.clock_mhz$"):
        gpu.parameter("clock_mhz")
    assert load_gpu("a100").parameters.mshrs is None


def test_the_hash_is_that_of_the_content(tmp_path: Path) -> None:
    text = HEAD + SOURCES + f"[device]\nsm_count = {{ value = 54, {FROM} }}\n"
    here, there = load_gpu(write(tmp_path, text)), load_gpu(write(tmp_path, text, "other.toml"))
    assert here.file_hash == there.file_hash
    changed = load_gpu(write(tmp_path, text.replace("54", "55")))
    assert changed.file_hash != here.file_hash
    assert len(here.file_hash) == 64


def test_an_abstract_gpu_needs_little(tmp_path: Path) -> None:
    gpu = load_gpu(write(tmp_path, ABSTRACT))
    assert gpu.abstract_only
    assert gpu.classes["op"].lambda_ == 1.5


def test_unknown_names() -> None:
    with pytest.raises(UsageError) as error:
        load_gpu("h101")
    assert str(error.value) == "unknown GPU 'h101'; nearest: h100, a10, v100; or a path ending in .toml"
    with pytest.raises(UsageError, match=r"unknown GPU 'xyz'; drywarp gpus lists the known ones; or a path"):
        load_gpu("xyz")
    with pytest.raises(UsageError, match=r"GPU file nowhere/x\.toml does not exist"):
        load_gpu("nowhere/x.toml")
    for shared in ("arch/base", "cc/8.0"):
        with pytest.raises(UsageError, match=f"unknown GPU '{shared}'"):
            load_gpu(shared)


# Body after the sources, the line that the error must name, and the rest of the message.
BAD: list[tuple[str, str, str]] = [
    (f"[device]\nsm_count = {{ value = -1, {FROM} }}", "7", "device.sm_count: expected a whole number >= 1, got -1"),
    (f"[classes.fp32]\nlambda = {{ value = 0, {FROM} }}", "7", "classes.fp32.lambda: expected a number > 0, got 0"),
    (f"[classes.fp32]\nlambda = {{ value = -2.5, {FROM} }}", "7",
     "classes.fp32.lambda: expected a number > 0, got -2.5"),
    (f"[device]\nsm_cuont = {{ value = 1, {FROM} }}", "7", "device.sm_cuont: unknown key; did you mean sm_count?"),
    (f"[memory.l2]\nbytez = {{ value = 1, {FROM} }}", "7", "memory.l2.bytez: unknown key; did you mean bytes?"),
    (f"[devices]\nsm_count = {{ value = 1, {FROM} }}", "6", "devices: unknown key; did you mean device?"),
    (f"[classes.fp32]\nlamda = {{ value = 1, {FROM} }}", "7", "classes.fp32.lamda: unknown key; did you mean lambda?"),
    ("[device]\nsm_count = 80", "7",
     'device.sm_count: expected { value = 80, source = "…", kind = "…" }, because every number needs a source'),
    (f'[device]\nsm_count = {{ value = "many", {FROM} }}', "7", "device.sm_count: expected a whole number, got 'many'"),
    (f'[classes.int]\nread_latency = {{ value = "x", {FROM} }}', "7",
     "classes.int.read_latency: expected a number, got 'x'"),
    (f"[device]\nsm_count = {{ value = 1.5, {FROM} }}", "7", "device.sm_count: expected a whole number, got 1.5"),
    (f"[device]\nsm_count = {{ value = true, {FROM} }}", "7", "device.sm_count: expected a whole number, got true"),
    (f"[device.sm_count]\nx = {{ value = 1, {FROM} }}", "6", "device.sm_count: expected a whole number, got a table"),
    (f"[memory.dram]\nread_gbs = {{ value = inf, {FROM} }}", "7",
     "memory.dram.read_gbs: expected a finite number, got inf"),
    ('[classes.fp32]\nsubsystem = "fmaa"', "7",
     "classes.fp32.subsystem: 'fmaa' is not in [subsystems]; did you mean fma?"),
    (f'[classes.fp23]\nsubsystem = "fma"\nlambda = {{ value = 2, {FROM} }}\nlatency = {{ value = 4, {FROM} }}', "6",
     "classes.fp23: unknown instruction class; did you mean fp32?"),
    ('[classes]\nfp32 = "fma"', "7", "classes.fp32: expected a table, got 'fma'"),
    ('[subsystems]\nfma = { scope = "gpu" }', "7", "subsystems.fma.scope: expected one of partition, sm, got 'gpu'"),
    ('[device]\nsm_count = { value = 9, source = "mime", kind = "measured" }', "7",
     "device.sm_count.source: 'mime' is not in [sources]; did you mean mine?"),
    ('[device]\nsm_count = { value = 9, source = "mine", kind = "guess" }', "7",
     "device.sm_count.kind: expected one of assumed, datasheet, derived, documented, inherited, measured, proxy,"
     " got 'guess'"),
    ('[device]\nsm_count = { value = 9, source = "mine" }', "7", "device.sm_count.kind: missing; expected a value"),
    (f"[device]\nsm_count = {{ vlaue = 9, {FROM} }}", "7", "device.sm_count.vlaue: unknown key; did you mean value?"),
    ('[device]\nsm_count = { value = 9, source = "mine", kind = "proxy" }', "7",
     "device.sm_count.note: missing; expected a reason, because kind is 'proxy'"),
    (f"[classes.fp32]\nlambda = {{ value = 0.5, {FROM} }}", "7",
     "classes.fp32.lambda: expected at least 1 cycles, the issue limit of a partition, got 0.5"),
    (f"[classes.shuffle]\nlambda = {{ value = 0.2, {FROM} }}", "7",
     "classes.shuffle.lambda: expected at least 0.25 cycles, the issue limit of an SM, got 0.2"),
    (f'[scheduler]\npolicy = {{ value = "fair", {FROM} }}', "7",
     "scheduler.policy: expected one of greedy_then_oldest, greedy_then_round_robin, greedy_then_youngest, "
     "loose_round_robin, oldest_first, got 'fair'"),
    (f"[memory.dram]\nread_gbs = {{ value = 9000, {FROM} }}", "7",
     "memory.dram.read_gbs: expected at most peak_gbs = 1555, got 9000"),
    (f"[memory.l2]\nfar_latency_ns = {{ value = 9, {FROM} }}", "7",
     "memory.l2.far_latency_ns: expected at least near_latency_ns = 145.9"),
    (f"[memory]\nline_bytes = {{ value = 100, {FROM} }}", "7",
     "memory.line_bytes: expected a multiple of sector_bytes = 32"),
    (f"[memory.constants]\nways = {{ value = 3, {FROM} }}", "7",
     "memory.constants.ways: expected 1, 2, 4, 8, 16, 32, 64, got 3"),
    (f"[memory.constants]\nbytes = {{ value = 128, {FROM} }}", "7",
     "memory.constants.bytes: expected a multiple of ways · line_bytes = 256"),
    (f"[memory.constants]\nline_bytes = {{ value = 2, {FROM} }}", "7",
     "memory.constants.line_bytes: expected a multiple of 4, got 2"),
    (f"[device]\nboost_clock_mhz = {{ value = 10, {FROM} }}", "7",
     "device.boost_clock_mhz: expected at least base_clock_mhz = 765, got 10"),
    (f"[occupancy]\ncarveout_bytes = {{ value = [8192, 0], {FROM} }}", "7",
     "occupancy.carveout_bytes: expected sizes in ascending order"),
    (f"[occupancy]\ncarveout_bytes = {{ value = [], {FROM} }}", "7",
     "occupancy.carveout_bytes: expected a list of length >= 1, got []"),
    (f"[occupancy]\nmax_warps_per_sm = {{ value = 32, {FROM} }}", "",
     "occupancy.max_threads_per_sm: expected max_warps_per_sm · warp_size = 1024"),
    (f"[parameters]\nmshr = {{ value = 9, {FROM} }}", "7", "parameters.mshr: unknown key; did you mean mshrs?"),
    (f"[parameters]\nclock_mhz = {{ value = 0, {FROM} }}", "7", "parameters.clock_mhz: expected a number > 0, got 0"),
    (f"[tensor]\nfp46 = {{ value = 9, {FROM} }}", "7", "tensor.fp46: unknown input type; did you mean fp4?"),
    ("[device", "6", "not TOML: Expected ']' at the end of a table declaration"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "line", "message"), BAD)
def test_one_line_says_what_is_wrong(tmp_path: Path, body: str, line: str, message: str) -> None:
    path = write(tmp_path, HEAD + SOURCES + body + "\n")
    with pytest.raises(InputFileError) as error:
        load_gpu(path)
    text = str(error.value)
    assert "\n" not in text
    assert text.endswith(f": {message}")
    if line:
        assert text == f"{path}:{line}: {message}"


BAD_FILES: list[tuple[str, str]] = [
    ("", ": format: expected format = 1"),
    ("format = 2\ntitle = 'x'\n", ":1: format: expected format = 1"),
    ("format = 1\n", ": title: missing; expected the GPU's full name"),
    ("format = 1\ntitle = 7\n", ":2: title: expected text, got 7"),
    ("format = 1\ntitle = 'x'\n", ": scheduler: missing; expected a table"),
    ("format = 1\ntitle = 'x'\ninherits = 'a100x'\n", ":3: inherits: unknown GPU 'a100x'; did you mean a100?"),
    ("format = 1\ntitle = 'x'\ninherits = 'no.toml'\n", ":3: inherits: expected an existing file, got 'no.toml'"),
    ("format = 1\ntitle = 'x'\ninherits = 'mine.toml'\n", ":3: inherits: circular inheritance: mine -> mine"),
    ("format = 1\ntitle = 'x'\ninherits = 3\n", ":3: inherits: expected the name of a GPU or architecture, got 3"),
    ("format = 1\ntitle = 'x'\ninherits = ['a100', 3]\n",
     ":3: inherits: expected the name of a GPU or architecture, got 3"),
    ("format = 1\ntitle = 'x'\ninherits = 'cc/8.1'\n", ":3: inherits: unknown GPU 'cc/8.1'; did you mean cc/8.9?"),
    (HEAD + "sources = 3\n", ":4: sources: expected a table, got 3"),
    (HEAD + "device = 3\n", ":4: device: expected a table, got 3"),
    (HEAD + "[sources]\nguide = 'another'\n", ":5: sources.guide: an inherited file uses this key for another source"),
    (HEAD + "[sources]\nmine = 3\n", ":5: sources.mine: expected text that names the source, got 3"),
    (HEAD + "arch = 'ampere'\n", ":4: arch: expected a text such as \"sm_80\" or \"gfx90a\", got 'ampere'"),
    (HEAD + "compute_capability = '8'\n", ":4: compute_capability: expected a text such as \"8.0\", got '8'"),
    (ABSTRACT.replace("[sources]", 'arch = "sm_80"\n[sources]'), ": compute_capability: missing; required with arch"),
    (ABSTRACT.replace("[sources]", 'arch = "sm_80"\ncompute_capability = "8.0"\n[sources]'),
     ": device: missing; expected a table"),
    (ABSTRACT.replace("latency", "read_latency"), ":11: classes.op.latency: missing; expected a value in cycles"),
    (ABSTRACT.replace('subsystem = "pipe"\n', ""), ":11: classes.op.subsystem: missing; expected a value"),
    (ABSTRACT.replace(f"partitions = {{ value = 1, {FROM} }}\n", ""),
     ":5: scheduler.partitions: missing; expected a value"),
    (ABSTRACT + f"[device]\nsm_count = {{ value = 1, {FROM} }}\n",
     ":15: device.base_clock_mhz: missing; expected a value in MHz"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), BAD_FILES)
def test_a_file_that_lacks_something(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(InputFileError) as error:
        load_gpu(path)
    assert str(error.value) == path + message


def test_a_circle_of_two(tmp_path: Path) -> None:
    write(tmp_path, "format = 1\ntitle = 'b'\ninherits = 'a.toml'\n", "b.toml")
    path = write(tmp_path, "format = 1\ntitle = 'a'\ninherits = 'b.toml'\n", "a.toml")
    with pytest.raises(InputFileError, match=r"b\.toml:3: inherits: circular inheritance: a -> b -> a"):
        load_gpu(path)


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_bytes(b"title = '\xff'")
    with pytest.raises(InputFileError) as error:
        load_gpu(str(path))
    assert str(error.value) == f"{path}: expected UTF-8 text"


def test_a_missing_class_is_named() -> None:
    a100 = load_gpu("a100")
    classes = {name: cost for name, cost in a100.classes.items() if name != "vote"}
    needed = classes_of(a100.arch)
    with pytest.raises(InputFileError, match=r"^classes\.vote: missing; expected subsystem, lambda and latency$"):
        check_classes(classes, a100.subsystems, False, lambda key, what: InputFileError(f"{key}: {what}"), needed)


@pytest.mark.parametrize(
    ("spelled", "name"),
    [
        ("RTX 2080 Ti", "rtx2080ti"),
        ("rtx-2080-ti", "rtx2080ti"),
        ("NVIDIA GeForce RTX 3090", "rtx3090"),
        ("A100-SXM4-80GB", "a100-sxm4-80gb"),
        ("NVIDIA A100 80GB PCIe", "a100-pcie-80gb"),
        ("NVIDIA A100-PCIE-40GB", "a100"),
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("Tesla V100-SXM2-16GB", "v100"),
        ("AMD Instinct MI210", "mi210"),
        ("NVIDIA GeForce RTX 3060", "rtx3060"),
        ("NVIDIA GeForce RTX 3060 Ti", "rtx3060ti"),
        ("NVIDIA GeForce RTX 4060 Ti", "rtx4060ti"),
        ("NVIDIA GeForce GTX 1650", "gtx1650"),
        ("NVIDIA A10", "a10"),
        ("NVIDIA A10G", "a10g"),
        ("NVIDIA RTX A5000", "a5000"),
        ("NVIDIA RTX 6000 Ada Generation", "rtx6000-ada"),
        ("NVIDIA H100 NVL", "h100-nvl"),
        ("NVIDIA GH200 480GB", "gh200"),
        ("NVIDIA GB200", "gb200"),
        ("NVIDIA B300 SXM6 AC", "b300"),
        ("Tesla V100-PCIE-16GB", "v100-pcie"),
        ("Tesla V100-SXM2-32GB", "v100-32gb"),
        ("NVIDIA TITAN V", "titanv"),
        ("Orin", "orin"),
        ("Orin (nvgpu)", "orin"),
        ("AMD Instinct MI250X", "mi250x"),
    ],
)
def test_a_product_as_its_driver_or_a_shop_spells_it(spelled: str, name: str) -> None:
    assert load_gpu(spelled) == load_gpu(name)


def test_each_title_and_alias_means_its_own_file_alone() -> None:
    for name in (name for name in gpu_names() if "/" not in name):
        gpu = load_gpu(name)
        for spelled in (gpu.title, *gpu.aliases):
            assert load_gpu(spelled) == gpu, spelled
        assert gpu.to_dict()["aliases"] == list(gpu.aliases)


@pytest.mark.parametrize(("spelled", "nearest"), [("A100 40GB", "a100, a100-sxm4-40gb"), ("2080 Ti", "rtx2080ti")])
def test_what_fits_several_products_or_a_part_is_asked_back(spelled: str, nearest: str) -> None:
    with pytest.raises(UsageError, match=f"unknown GPU '{spelled}'; nearest: {nearest};"):
        load_gpu(spelled)
