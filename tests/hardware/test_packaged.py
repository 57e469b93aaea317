"""The packaged GPU files: complete, consistent, and true to their sources."""

from __future__ import annotations

import math
import pickle
from typing import Any

import pytest

from drywarp.errors import UsageError
from drywarp.hardware import Gpu, Parameters, capabilities, gpu_names, load_gpu
from drywarp.hardware.fact import CLASS_NAMES, KINDS, classes_of
from drywarp.hardware.load import ancestry, leaves, resolve
from drywarp.hardware.schema import HEADER
from drywarp.hardware.toml_file import DATA, read
from drywarp.kernel.isa.nvidia.opcodes import CLASSES, MEMORY_CLASSES

MACHINE_GPUS = [name for name in gpu_names() if not name.startswith("papers/")]


@pytest.fixture(scope="module")
def a100() -> Gpu:
    return load_gpu("a100")


@pytest.fixture(scope="module")
def h100() -> Gpu:
    return load_gpu("h100")


def test_names_are_found_by_looking_in_the_folder() -> None:
    names = gpu_names()
    assert {"v100", "t4", "a100", "a100-sxm4-80gb", "rtx4090", "h100", "h200", "b200", "papers/example"} <= set(names)
    assert names == [*sorted(MACHINE_GPUS), *sorted(set(names) - set(MACHINE_GPUS))]
    assert not [name for name in names if name.startswith(("arch/", "cc/"))]


@pytest.fixture(scope="module")
def used_sources() -> set[str]:
    used = {fact.source for name in gpu_names() for _, fact in load_gpu(name).facts()}
    for capability in capabilities():
        limits = resolve(f"cc/{capability}", DATA / f"cc/{capability}.toml")
        used |= {fact.source for fact in limits.facts.values()}
    return used | {"forum_pipes"}  # named in comments: it says which pipe, not how fast


@pytest.mark.parametrize("name", gpu_names())
def test_every_file_loads_and_every_number_has_a_source(name: str) -> None:
    gpu = load_gpu(name)
    facts = dict(gpu.facts())
    assert gpu.name == name
    assert gpu.title
    for key, fact in facts.items():
        assert fact.source in gpu.sources, key
        assert fact.kind in KINDS, key
        assert fact.note or fact.kind not in ("proxy", "assumed", "inherited"), key
        if isinstance(fact.value, float):
            assert math.isfinite(fact.value), key


@pytest.mark.parametrize("name", gpu_names())
def test_every_source_of_a_file_is_used(name: str, used_sources: set[str]) -> None:
    assert set(load_gpu(name).sources) <= used_sources


@pytest.mark.parametrize("name", MACHINE_GPUS)
def test_every_class_is_covered(name: str) -> None:
    gpu = load_gpu(name)
    assert set(gpu.classes) == classes_of(gpu.arch)
    for class_, cost in gpu.classes.items():
        # The copy engine has a latency of its own beside the memory's.
        assert (cost.latency is None) == (class_ in MEMORY_CLASSES - {"bulk_copy"}), class_
        assert float(gpu.fact(f"classes.{class_}.lambda").value) == cost.lambda_  # type: ignore[arg-type]


def test_the_vocabulary_is_the_kernels() -> None:
    assert set(CLASSES) == CLASS_NAMES


@pytest.mark.parametrize("name", MACHINE_GPUS)
def test_no_class_beats_the_issue_limit(name: str) -> None:
    gpu = load_gpu(name)
    # A SIMD of AMD's issues up to five instructions, of different wavefronts, in each turn of four cycles.
    rate = 5 / 4 if gpu.is_amd else 1
    assert gpu.scheduler.issue_per_cycle == rate
    for class_, cost in gpu.classes.items():
        sm_wide = gpu.subsystems[cost.subsystem].scope == "sm"
        assert cost.lambda_ * rate >= (1 / gpu.scheduler.partitions if sm_wide else 1), class_


@pytest.mark.parametrize("name", MACHINE_GPUS)
def test_architecture_values_are_written_once(name: str) -> None:
    """A product's file states only what belongs to the product."""
    stated = {key for key, fact in load_gpu(name).facts() if fact.file == name}
    sections = {key.partition(".")[0] for key in stated - {"classes.tensor.lambda"}}
    # GeForce cards, and A10G, halve some rates of the tensor cores that the chip has.
    # Γ belongs to the product too: it depends on the clock and the DRAM.
    assert {key for key in stated if key.startswith("parameters.")} <= {"parameters.sync_gamma"}
    assert sections <= {"device", "memory", "parameters", *(["tensor"] if name.startswith(("rtx", "a10g")) else [])}


def test_nanoseconds_and_gigabytes_follow_the_clock(a100: Gpu) -> None:
    """At 1410 MHz a nanosecond has 1.41 cycles, at half of that half as many; 1410 GB/s are 1000 bytes a cycle."""
    assert a100.cycles(100) == pytest.approx(141)
    assert a100.cycles(100, clock_mhz=705) == pytest.approx(70.5)
    assert a100.bytes_per_cycle(1410) == pytest.approx(1000)
    assert a100.bytes_per_cycle(1410, clock_mhz=705) == pytest.approx(2000)


def test_half_precision_has_a_pipe_of_its_own_on_ga100_and_not_on_gh100(a100: Gpu, h100: Gpu) -> None:
    assert (a100.classes["fp16"].subsystem, h100.classes["fp16"].subsystem) == ("fp16", "fma")


def test_occupancy_limits(a100: Gpu, h100: Gpu) -> None:
    for gpu, unified, shared in ((a100, 192, 164), (h100, 256, 228)):
        limits = gpu.occupancy
        assert limits.unified_bytes_per_sm == unified * 1024
        assert limits.shared_bytes_per_sm == shared * 1024
        assert limits.shared_bytes_per_block_optin == (shared - 1) * 1024
        assert limits.carveout_bytes[-1] == shared * 1024
        assert (limits.max_warps_per_sm, limits.max_blocks_per_sm, limits.registers_per_sm) == (64, 32, 65536)


def test_tensor_rates(a100: Gpu, h100: Gpu) -> None:
    assert a100.tensor_lambda("fp16", 16, 8, 16) == 8 == a100.classes["tensor"].lambda_
    assert h100.tensor_lambda("fp16", 16, 8, 16) == 4 == h100.classes["tensor"].lambda_
    assert a100.tensor_lambda("tf32", 16, 8, 8) == 8
    assert a100.tensor_lambda("fp64", 8, 8, 4) == 16
    # Peak of the datasheet: 312 and 989.4 (at 1830 MHz) TFLOPS of fp16.
    assert 2 * a100.tensor["fp16"] * 4 * 108 * 1.41e-3 == pytest.approx(312, rel=1e-3)
    assert 2 * h100.tensor["fp16"] * 4 * 132 * 1.83e-3 == pytest.approx(989.4, rel=1e-3)
    with pytest.raises(UsageError, match="GPU a100 has no tensor rate for fp8; it has: fp16, bf16, tf32, fp64, int8"):
        a100.tensor_lambda("fp8", 16, 8, 32)


def test_floats_with_scale_factors_run_at_the_plain_rate_where_no_other_is_known() -> None:
    assert load_gpu("rtx5090").tensor_rate("fp8_scaled") == 2 * (load_gpu("rtx5090").tensor_rate("fp8") or 0)
    assert load_gpu("l4").tensor_rate("fp8_scaled") == load_gpu("l4").tensor_rate("fp8") == load_gpu("l4").tensor["fp8"]
    assert load_gpu("a100").tensor_rate("fp8_scaled") is None


def test_the_papers_example() -> None:
    gpu = load_gpu("papers/example")
    assert gpu.abstract_only
    assert (gpu.scheduler.partitions, gpu.scheduler.issue_per_cycle) == (1, None)
    assert (gpu.scheduler.policy, gpu.scheduler.in_order) == ("loose_round_robin", False)
    costs = {name: (cost.subsystem, cost.lambda_, cost.latency) for name, cost in gpu.classes.items()}
    assert costs == {"comp": ("comp", 1, 4), "mem": ("mem", 2, 6)}
    with pytest.raises(UsageError) as error:
        gpu.device  # noqa: B018
    assert str(error.value) == "GPU papers/example takes abstract workloads only: it has no [device]"


def test_a_gpu_travels_between_processes_and_into_json(a100: Gpu) -> None:
    assert pickle.loads(pickle.dumps(a100)) == a100
    plain = a100.to_dict()
    assert plain["facts"]["classes.fp32.lambda"] == {
        "value": 2,
        "unit": "cycles",
        "source": "guide",
        "kind": "documented",
        "note": "64 results/clk/SM",
        "file": "arch/ga100",
    }
    assert plain["facts"]["occupancy.carveout_bytes"]["value"][:2] == [0, 8192]
    assert plain["classes"]["fp32"] == "fma"


def test_a_file_repeats_nothing_that_it_inherits() -> None:
    """What an ancestor says is said again only where something differs; a product's own figures are its own."""
    for path in DATA.rglob("*.toml"):
        name = path.relative_to(DATA).as_posix().removesuffix(".toml")
        file = read(name, path)
        said: dict[str, tuple[object, ...]] = {}
        for ancestor in ancestry(file, ()):
            for key, value, entry in leaves(ancestor, _sections(ancestor.content), ""):
                now = (value, *((entry.source, entry.kind, entry.note) if entry else ()))
                assert said.get(key) != now or ancestor.path != path, f"{name} repeats {key}"
                if not ancestor.is_gpu:
                    said[key] = now


def _sections(content: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in content.items() if key not in HEADER}


def test_units_are_known(a100: Gpu) -> None:
    units = {key: fact.unit for key, fact in a100.facts()}
    assert units["memory.l2.near_latency_ns"] == "ns"
    assert units["classes.shared_load.read_latency"] == "cycles"
    assert units["device.sm_count"] == ""
    assert units["tensor.fp16"] == "FMA/cycle"
    assert units["occupancy.carveout_bytes"] == "bytes"
    assert str(a100.fact("memory.dram.read_gbs")) == f"{a100.memory.dram.read_gbs} GB/s"


def test_facts_stand_section_by_section(a100: Gpu) -> None:
    sections = [key.partition(".")[0] for key, _ in a100.facts()]
    assert list(dict.fromkeys(sections)) == [
        *("device", "memory", "occupancy", "host", "scheduler", "parameters", "classes", "tensor")
    ]
    assert sections == sorted(sections, key=list(dict.fromkeys(sections)).index)


def test_the_format_description_names_every_fixed_key(a100: Gpu) -> None:
    readme = (DATA / "README.md").read_text()
    for key, _ in a100.facts():
        section, _, name = key.partition(".")
        if section in ("device", "memory", "scheduler"):
            assert name.rpartition(".")[2] in readme, key
    for name in Parameters.__struct_fields__:
        assert f"`{name}`" in readme, name
