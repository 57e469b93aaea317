"""Where faults are put, and which tests are asked: those of the room, then those of whole answers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src" / "drywarp"
GENERATED = ("layout.h",)


@dataclass(frozen=True)
class Room:
    """A part of the program and its tests; of all faults `share` parts go into it."""

    sources: tuple[str, ...]
    tests: tuple[str, ...]
    share: int = 1

    def files(self) -> list[Path]:
        """Its source files: Python, C, and the data of GPUs."""
        found: list[Path] = []
        for source in self.sources:
            place = SOURCES / source
            found += sorted(place.rglob("*") if place.is_dir() else place.parent.glob(place.name))
        return [path for path in found if path.suffix in (".py", ".toml", ".c", ".h") and path.name not in GENERATED]


ROOMS = {
    "emulator": Room(
        ("execution/emulator",),
        (
            *("tests/emulator/test_integer_values.py", "tests/emulator/test_bit_values.py"),
            *("tests/emulator/test_float_values.py", "tests/emulator/test_warp_values.py", "tests/emulator"),
        ),
        3,
    ),
    "memory": Room(
        ("memory", "workload/memory_costs.py"),
        (
            *("tests/memory", "tests/test_memory_costs.py", "tests/test_node_costs.py", "tests/counters"),
            *("tests/test_measured.py", "tests/test_measured_by_hand.py"),
        ),
        3,
    ),
    "workload": Room(
        ("workload", "analysis/fits.py"),
        (
            *(
                "tests/test_node_costs.py",
                "tests/test_memory_costs.py",
                "tests/test_residency.py",
                "tests/test_phases.py",
            ),
            *("tests/test_workload.py", "tests/test_group_waits.py", "tests/test_cost_model.py", "tests/abstract"),
            *("tests/amd", "tests/test_constant_values.py", "tests/kernel/test_sleep.py"),
        ),
        3,
    ),
    "pipeline": Room(
        ("pipeline",), ("tests/pipeline", "tests/models/test_alone.py", "tests/models/test_pipeline_model.py"), 3
    ),
    "models": Room(("models",), ("tests/models", "tests/test_cusp.py", "tests/reproduce"), 3),
    "emulator in C": Room(
        ("core/native/emulat*.[ch]",),
        (
            *("tests/emulator/test_every_opcode.py", "tests/emulator/test_compiled_loop.py"),
            *("tests/emulator/test_integer_values.py", "tests/emulator/test_warp_values.py", "tests/emulator"),
        ),
        2,
    ),
    "memory in C": Room(
        ("core/native/runs.c", "core/native/l1.c", "core/native/distinct.c"), ("tests/memory", "tests/counters")
    ),
    "simulation in C": Room(
        tuple(f"core/native/{name}" for name in ("pipeline.h", "inorder.c", "dataflow.c", "blocks.c", "stalls.c")),
        ("tests/pipeline", "tests/models/test_pipeline_model.py"),
        2,
    ),
    "uncertainty": Room(("analysis/uncertainty",), ("tests/uncertainty",)),
    "advice": Room(("analysis/advice",), ("tests/advice",)),
    "counters": Room(("analysis/counters",), ("tests/counters", "tests/test_detail.py")),
    "symbolic": Room(("execution/symbolic", "analysis/without_data.py"), ("tests/amd", "tests/symbolic")),
    "kernel": Room(("kernel",), ("tests/kernel", "tests/test_structures.py")),
    "frontends": Room(("frontends",), ("tests/frontends",)),
    "hardware": Room(("hardware",), ("tests/hardware",), 2),
    "comparison": Room(
        ("analysis/compare", "analysis/rank.py", "analysis/several_gpus.py"), ("tests/compare", "tests/rank")
    ),
    "report": Room(
        ("report", "analysis/result", "support/text.py"),
        ("tests/report", "tests/test_lines.py", "tests/cli/test_every_verb.py", "tests/figures", "tests/serve"),
        2,
    ),
    "command line": Room(
        ("cli", "analysis/request.py"),
        ("tests/test_arguments.py", "tests/test_stated_launch.py", "tests/cli"),
    ),
    "answers": Room(
        (
            *("analysis/stages.py", "analysis/build_result.py", "analysis/fits.py", "analysis/detail"),
            *("execution/long_loops.py", "analysis/emulation_cache.py", "analysis/measured.py"),
        ),
        (
            *("tests/test_measured_by_hand.py", "tests/test_analyze.py", "tests/test_detail.py"),
            *("tests/test_long_loops.py", "tests/test_measured.py", "tests/counters/test_one_source.py"),
        ),
    ),
    "rows": Room(
        ("experiments/rows", "experiments/sweep", "experiments/validate"),
        ("tests/rows", "tests/sweep", "tests/validate"),
    ),
}
WHOLE_ANSWERS = (
    *("tests/report/test_golden.py", "tests/report/test_text_against_json.py", "tests/test_analyze.py"),
    *("tests/cli/test_every_verb.py", "tests/examples/test_examples.py"),
)
"""Asked where the tests of the room saw nothing."""
