"""Data flows one way: who may import whom (docs/architecture.md), read off the source files."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import drywarp

ROOT = Path(drywarp.__file__).parent

BOUND_SIDE = {"bound", "errors"}
ALLOWED: dict[str, set[str]] = {
    "errors": set(),
    # Where things are kept between runs, and machine code among them.
    "folders": set(),
    "stored_code": {"folders"},
    "kernel": {"errors"},
    "hardware": {"errors"},
    "bound": {"errors"},
    "frontends": {"kernel", "errors", "folders"},
    "emulator": {"kernel", "errors", "stored_code"},
    "memory": {"kernel", "hardware", "errors", "folders", "stored_code"},
    "counted_waits": {"bound"},
    # Counters of outstanding accesses as dependences, for AMD machine code.
    "outstanding": {"kernel"},
    # Phases of barriers that some warps of a block signal and others await.
    "meetings": {"kernel", "bound"},
    "workload": {"kernel", "bound", "counted_waits", "meetings", "outstanding", "errors"},
    # Follows code without running it; what an opcode computes, and which blocks are sampled, is the emulator's.
    "static": {"kernel", "emulator", "errors"},
    "binding": {"kernel", "hardware", "memory", "workload", "bound", "errors"},
    # Real kernels on GPUs of the papers.
    "table_binding": {"binding", "bound", "errors", "hardware", "kernel", "memory", "workload"},
    "pipeline": BOUND_SIDE | {"folders", "stored_code"},
    "models": BOUND_SIDE | {"pipeline"},
    # What warps issued when, with the kernel's words.
    "execution_trace": {"bound", "kernel", "pipeline"},
    # What the parts of an answer are: types, no machinery.
    "detail": {"models"},
    "units": set(),
    # What a notebook shows of an answer's JSON object.
    "notebook": {"errors", "units"},
    "finding": set(),
    "plain_text": set(),
    # What an answer looks like as a figure; the answer comes as a protocol, so that it can draw itself.
    "figures": {"detail", "errors", "models", "plain_text", "units"},
    "result": {
        *("detail", "errors", "execution_trace", "figures", "finding", "kernel", "models", "notebook", "pipeline"),
        "static",
    },
    "lines": {"kernel", "result"},
    # Abstract kernel files tied to a GPU: what binding is to machine code.
    "workloads": {"frontends", "kernel", "memory", "hardware", "binding", "bound", "errors"},
    "ready": {"bound", "emulator", "hardware", "kernel", "memory", "models", "result", "static", "workload"},
    # How far a predicted time may be from the truth.
    "band": {
        *("binding", "bound", "hardware", "kernel", "memory", "models", "pipeline", "ready", "result"),
        *("units", "workload"),
    },
    # What a report shows beyond the figures, gathered where it is asked for.
    "in_detail": {"bound", "detail", "errors", "kernel", "lines", "models", "pipeline", "ready"},
    "measured": {"binding", "errors", "kernel", "memory", "models", "ready", "result"},
    # What emulations found, kept on disk.
    "emulations": {"__version__", "folders", "frontends", "kernel", "memory", "stored_code"},
    "long_loops": {"emulator", "errors", "kernel", "static"},
    "whole_blocks": {"emulator", "errors", "kernel", "memory"},
    "time_box": set(),
    "assemble": {"__version__", "binding", "frontends", "kernel", "lines", "models", "ready", "result"},
    "doctor": {"__version__", "errors", "frontends", "result"},
    "textures": {"kernel", "errors"},
    "tensor_maps": {"kernel", "errors"},
    "arguments": {"kernel", "errors", "tensor_maps", "textures"},
    "objects": {"arguments", "kernel", "errors", "textures"},
    "static_api": {"arguments", "errors", "frontends", "hardware", "kernel", "ready", "static"},
    "specialise": {"arguments", "errors", "frontends", "kernel"},
    "tuning": {"errors", "ready"},
    # Whether a launch fits a GPU; at which occupancies models are asked; what a caller and a comment state together.
    "fit": {"errors", "hardware", "kernel", "memory", "table_binding", "units"},
    "curve_points": {"bound", "errors", "pipeline"},
    "stated_launch": {"arguments", "errors", "frontends", "kernel"},
    "api": {
        *("curve_points", "fit", "stated_launch"),
        *("assemble", "band", "emulations", "execution_trace", "long_loops", "measured", "ready", "specialise"),
        *("in_detail", "tuning", "whole_blocks"),
        *("__version__", "arguments", "binding", "bound", "emulator", "errors", "frontends", "hardware", "kernel"),
        *("memory", "models", "pipeline", "result", "lines", "static", "static_api", "table_binding", "workload"),
    },
    # One kernel on several GPUs, and what is made of that.
    "several_gpus": {"api", "errors", "hardware", "ready"},
    "comparison": {
        *("__version__", "api", "counts_api", "errors", "figures", "hardware", "notebook", "ready", "result"),
        *("several_gpus", "units"),
    },
    "ranking": {
        *("__version__", "api", "errors", "figures", "hardware", "notebook", "ready", "result", "several_gpus"),
        "units",
    },
    # What each fix is worth, by simulating the kernel again without its problem.
    "advice": {
        *("api", "binding", "bound", "errors", "finding", "frontends", "hardware", "kernel", "memory", "models"),
        *("emulator", "fit", "models_api", "pipeline", "ready", "result", "whole_blocks", "workload"),
    },
    # Every launch of a launches file.
    "launch_series": {"advice", "errors", "frontends", "hardware", "notebook", "ready", "result", "units"},
    "counters": {"kernel", "memory"},
    # Whole folders, a module in a process of its own.
    "corpus": {
        *("__version__", "api", "emulator", "errors", "frontends", "hardware", "kernel", "result", "static"),
        *("time_box", "workload"),
    },
    "counts_api": {
        *("__version__", "api", "band", "counters", "errors", "frontends", "memory", "pipeline", "ready", "result"),
    },
    "models_api": {
        *("api", "band", "bound", "curve_points", "errors", "hardware", "kernel", "measured", "models", "pipeline"),
        "workloads",
    },
    "cusp": {"hardware", "models", "errors"},
    # Rows of parameters, each predicted in a process of its own.
    "rows": {
        "folders",
        *("emulations", "fit"),
        *("__version__", "api", "band", "emulator", "errors", "frontends", "hardware", "models", "models_api"),
        *("ready", "result"),
    },
    # Tables of measurements, each row predicted.
    "validation": {"__version__", "errors", "figures", "frontends", "hardware", "kernel", "models", "result", "rows"},
    # Spaces of configurations, each predicted.
    "sweeps": {"__version__", "errors", "frontends", "hardware", "models", "pipeline", "rows"},
    # A card through its driver.
    "device": {"errors"},
    # What stands in the place of a card, for calibration and measuring.
    "simulated_times": {"errors", "hardware"},
    # Micro-benchmarks on a card or on the simulation; only certain modules see the hardware data (below).
    "calibration": {
        *("__version__", "api", "device", "errors", "frontends", "hardware", "kernel", "models", "simulated_times"),
    },
    # Kernels measured on a card, and the table that comes out.
    "measuring": {
        *("__version__", "api", "arguments", "device", "emulator", "errors", "frontends", "hardware", "kernel"),
        *("models", "rows", "simulated_times", "validation"),
    },
    # Hooks for other people's tuners.
    "integrations": {
        *("__version__", "api", "errors", "frontends", "hardware", "kernel", "models", "ready", "rows", "sweeps"),
        "validation",
    },
    # The papers' numbers, computed by the models and the simulation from GPU files and small kernels.
    "reproduction": {"bound", "cusp", "errors", "hardware", "models", "pipeline", "workloads"},
    "report": {
        *("calibration", "comparison", "corpus", "launch_series", "ranking", "sweeps", "validation"),
        *("__version__", "counters", "cusp", "detail", "errors", "frontends", "hardware", "kernel", "models"),
        *("bound", "execution_trace", "figures", "finding", "pipeline", "plain_text", "reproduction", "result"),
        *("static", "units"),
    },
    # A page on this machine, and the process behind it that analyses.
    "serve": {
        *("advice", "api", "bound", "emulator", "errors", "frontends", "hardware", "in_detail", "models", "pipeline"),
        *("curve_points", "ready", "report", "result"),
    },
    "cli": {
        "device",
        "measuring",
        "calibration",
        "comparison",
        "figures",
        "launch_series",
        "serve",
        "advice",
        "corpus",
        "ranking",
        "__version__",
        "api",
        "counts_api",
        "cusp",
        "models",
        "models_api",
        "workloads",
        "doctor",
        "report",
        "result",
        "errors",
        "execution_trace",
        "hardware",
        "emulator",
        "frontends",
        "reproduction",
        "static_api",
        "sweeps",
        "time_box",
        "validation",
    },
    "__main__": {"cli"},
    # The public names, loaded on first use.
    "__init__": {
        *("advice", "api", "comparison", "errors", "figures", "hardware", "objects", "ranking", "result"),
        *("sweeps", "tensor_maps", "validation"),
    },
}
"""Room (folder or module of the package) to the rooms that it may import."""

TYPES_ONLY = {
    ("result", "models"): {"models.base"},
    ("detail", "models"): {"models.base"},
    ("figures", "models"): {"models.base"},
    ("result", "static"): {"static.report"},
    ("report", "static"): {"static.report"},
    ("static", "emulator"): {
        *("emulator.bits", "emulator.compare", "emulator.constants", "emulator.decode", "emulator.machine"),
        *("emulator.memory_ops", "emulator.program", "emulator.refine", "emulator.sampling"),
    },
    ("result", "kernel"): {"kernel.kernel", "kernel.launch", "kernel.sampling"},
    ("report", "models"): {"models.base", "models.comparison", "models.input_sources", "models.inputs"},
    ("report", "corpus"): {"corpus.result"},
    ("report", "calibration"): {"calibration.result"},
    ("calibration", "models"): {"models.pipeline"},
    ("calibration", "hardware"): {"hardware", "hardware.architectures"},
    ("result", "execution_trace"): {"execution_trace"},
    ("report", "pipeline"): {"pipeline.execution", "pipeline.reasons"},
    ("report", "comparison"): {"comparison.result", "comparison.side"},
    ("report", "ranking"): {"ranking.result"},
    ("cli", "ranking"): {"ranking", "ranking.result"},
    ("report", "sweeps"): {"sweeps.prune", "sweeps.result", "sweeps.row"},
    ("report", "validation"): {
        *("validation.accuracy", "validation.by_kernel", "validation.compare", "validation.coverage"),
    },
    ("report", "counters"): {"counters.metrics", "counters.result"},
    ("report", "frontends"): {"frontends.abstract", "frontends.measured_file"},
    ("cli", "models"): {"models.comparison"},
    ("serve", "frontends"): {"frontends.comment", "frontends.nvcc", "frontends.ptx_text", "frontends.toolchain"},
    ("report", "figures"): {"figures.theme"},
    ("serve", "report"): {"report.html.colours", "report.html.pack", "report.html.payload"},
    ("report", "reproduction"): {"reproduction.row"},
    ("cli", "reproduction"): {"reproduction.reproduce"},
    ("report", "kernel"): {"kernel.kernel", "kernel.launch", "kernel.instruction", "kernel.sampling"},
    ("result", "pipeline"): {"pipeline.occupancy"},
    ("cli", "emulator"): {"emulator"},
    ("cli", "frontends"): {"frontends", "frontends.cache", "frontends.comment", "frontends.measured_file"},
}
"""Where only certain modules of a room may be imported."""

ABOVE_API = {
    "comparison",
    "launch_series",
    "ranking",
    "several_gpus",
    "corpus",
    "counts_api",
    "models_api",
    "report",
    "serve",
    "cli",
    "advice",
    "rows",
    "sweeps",
    "validation",
    "calibration",
    "measuring",
    "integrations",
    "__init__",
    "__main__",
}


def room_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Line and dotted name, from the package's root, of everything of ours that a file imports."""
    package = [*path.relative_to(ROOT).parts[:-1]]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "drywarp":
                    yield node.lineno, alias.name.removeprefix("drywarp").removeprefix(".")
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                base = package[: len(package) - node.level + 1]
                base += node.module.split(".") if node.module else []
            elif node.module and node.module.split(".")[0] == "drywarp":
                base = node.module.split(".")[1:]
            else:
                continue
            # `from . import x` names a module, or an attribute of the package itself.
            for alias in node.names:
                yield node.lineno, ".".join(base) if base else alias.name


FILES = sorted(ROOT.rglob("*.py"))


def test_the_files_are_found() -> None:
    assert {room_of(path) for path in FILES} >= {
        "kernel",
        "frontends",
        "emulator",
        "memory",
        "pipeline",
        "models",
        "cli",
    }


def test_every_room_has_its_rule() -> None:
    unknown = {room_of(path) for path in FILES} - set(ALLOWED)
    assert unknown == set(), "say in ALLOWED what this room may import"


def test_imports_follow_the_arrows() -> None:
    wrong = []
    for path in FILES:
        room = room_of(path)
        for line, name in imports(path):
            other = name.split(".")[0]
            if other == room:
                continue
            permitted = ALLOWED.get(room)
            if permitted is not None and other not in permitted:
                wrong.append(f"{path.relative_to(ROOT)}:{line}: {room} imports {name}")
            only = TYPES_ONLY.get((room, other))
            if only is not None and name not in only:
                wrong.append(f"{path.relative_to(ROOT)}:{line}: imports {name}, expected {', '.join(sorted(only))}")
    assert wrong == []


def test_nothing_below_imports_api() -> None:
    below = [path for path in FILES if room_of(path) not in ABOVE_API | {"api"}]
    found = [
        f"{path.relative_to(ROOT)}:{line}: imports {name}"
        for path in below
        for line, name in imports(path)
        if name.split(".")[0] in {"api", *ABOVE_API}
    ]
    assert found == []


def test_what_is_fitted_comes_from_timings_alone() -> None:
    """Of the calibration's files only the writer of GPU files and the simulated card know hardware data or the api."""
    knowing = {"hardware", "api", "models", "binding", "memory", "pipeline"}
    for path in sorted((ROOT / "calibration").rglob("*.py")):
        found = {name.split(".")[0] for _, name in imports(path)} & knowing
        allowed = {"gpu_file.py": {"hardware"}, "simulated_card.py": {"api", "hardware", "models"}}
        assert found <= allowed.get(path.name, set()), path
        if path.parent.name in ("fits", "experiments"):
            inside = {name for _, name in imports(path) if name.startswith("calibration")}
            knows_devices = ("gpu_file", "simulated_card", "card", "calibrate")
            assert not {n for n in inside if n.split(".")[1] in knows_devices}, path


def test_the_rules_themselves_have_no_cycle() -> None:
    seen: dict[str, int] = {}

    def depth(room: str, above: tuple[str, ...] = ()) -> int:
        assert room not in above, " -> ".join((*above, room))
        if room not in seen:
            seen[room] = 1 + max((depth(other, (*above, room)) for other in ALLOWED.get(room, ())), default=0)
        return seen[room]

    assert depth("api") > depth("models") > depth("pipeline") > depth("bound")


def test_starting_the_program_loads_neither_numpy_nor_the_api() -> None:
    """`--help` should not wait for them: they are imported where they are used."""
    heavy = {"numpy", "numba", "rich", "msgspec"}
    for path in (ROOT / "__init__.py", *sorted((ROOT / "cli").glob("*.py"))):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in tree.body:
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not {n.split(".")[0] for n in names} & (heavy | {"api"}), f"{path.name}: line {node.lineno}"


def test_tests_read_public_names_only() -> None:
    """What deserves a test of its own deserves a public name."""
    private = []
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        ours: set[str] = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "drywarp":
                ours |= {alias.asname or alias.name for alias in node.names}
                named = [alias.name for alias in node.names]
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ours:
                named = [node.attr]
            else:
                continue
            hidden = [name for name in named if name.startswith("_") and not name.startswith("__")]
            private += [f"{path.name}:{node.lineno}: {name}" for name in hidden]
    assert private == []
