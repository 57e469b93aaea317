"""A page for each model, from its docstrings, its code, and what it says of the papers' example kernel."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from types import FunctionType, ModuleType
from typing import Any

from drywarp.analysis.every_model import compare_models
from drywarp.models import get_model, model_names
from drywarp.models.comparison import Comparison
from drywarp.models.inputs import ModelInputs
from drywarp.models.inputs_parts import sources_of_kernel

from .escape import cell, code, docstring, inline, table
from .page import Page
from .pictures.curves import curves

EXAMPLE = "papers/example"
_SHARED = ("base", "inputs", "inputs_parts", "work_flow_graph", "cycles_per_run", "comparison")
"""Modules of the room that are no formulas of a model."""


def model_pages() -> Iterator[Page]:
    """The list first."""
    models = {name: get_model(name) for name in model_names()}
    rows = [
        [f'<a href="{cell(name)}.html"><code>{cell(name)}</code></a>', cell(m.summary)] for name, m in models.items()
    ]
    yield Page(
        "models/index.md",
        "All models",
        "# Models\n\nEvery analytical model of the papers answers from the same workload, so that they can be "
        "compared: `drywarp models KERNEL`. `pipeline` is the simulation that `drywarp analyze` reports.\n\n"
        + table(["model", "what it is"], rows)
        + "\n\n## What models are given\n\n"
        + docstring(inspect.getdoc(ModelInputs) or "")
        + "\n",
    )
    for name, model in models.items():
        yield Page(f"models/{name}.md", name, _page(name, model))


@cache
def example() -> Comparison:
    """All models on the papers' example, one to twelve warps."""
    return compare_models(EXAMPLE, occupancies=range(1, 13))


def _page(name: str, model: Any) -> str:
    # Most models are a function; the others are a class.
    module = sys.modules[getattr(model, "runs", type(model)).__module__]
    parts = [f"# {inline(name)}", f"*{inline(model.summary)}*", docstring(inspect.getdoc(module) or "")]
    parts += ["## When it says nothing", *_reasons(model, module)]
    parts += ["## What it takes", _inputs(module), "## The example kernel", *_example(name)]
    if formulas := list(_formulas(module)):
        parts += ["## Formulas", "As they stand in the code, which computes with them.", *formulas]
    parts += ["[All models](index.md), [how inputs are derived](index.md#what-models-are-given)."]
    return "\n\n".join(parts) + "\n"


def _modules(module: ModuleType) -> list[ModuleType]:
    """The module and those of the room that it imports from, but for what all share."""
    found = [module]
    for at in found:
        for node in ast.walk(ast.parse(inspect.getsource(at))):
            if isinstance(node, ast.ImportFrom) and node.level == 1 and node.module and node.module not in _SHARED:
                other = sys.modules.get(f"drywarp.models.{node.module}")
                if other and other not in found:
                    found.append(other)
    return found


def _reasons(model: Any, module: ModuleType) -> list[str]:
    told = sorted({reason for at in _modules(module) for reason in _raised(at)})
    if not told:
        return ["It applies to every workload."]
    return ["It does not apply, and says so, where", "\n".join(f"- {inline(reason)}" for reason in told)]


def _raised(module: ModuleType) -> Iterator[str]:
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        is_raise = isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call)
        if is_raise and getattr(node.exc.func, "id", "") == "NotApplicable":  # type: ignore[attr-defined]
            (text,) = node.exc.args  # type: ignore[attr-defined]
            if isinstance(text, ast.Constant):
                yield str(text.value)
            elif isinstance(text, ast.JoinedStr):
                yield "".join(str(p.value) if isinstance(p, ast.Constant) else "…" for p in text.values)


def _inputs(module: ModuleType) -> str:
    known = {field.name for field in fields(ModelInputs)}
    used = {
        node.attr
        for at in _modules(module)
        for node in ast.walk(ast.parse(inspect.getsource(at)))
        if isinstance(node, ast.Attribute) and node.attr in known and isinstance(node.value, ast.Name)
    }
    sources = sources_of_kernel(measured_memory=False, measured_counts=False)
    if module.__name__.endswith(".pipeline"):
        return "The whole bound workload: every instruction with its dependences, subsystem, λ and Λ."
    rows = [[f"<code>{cell(name)}</code>", cell(sources.get(name, ""))] for name in sorted(used)]
    return table(["input", "where it comes from, for a real kernel"], rows)


def _example(name: str) -> list[str]:
    answer = example()
    said = f"`drywarp models {EXAMPLE} --occupancy 1-12`: "
    if name not in answer.predictions:
        return [f"{said}{inline(answer.not_applicable[name])}."]
    prediction = answer.predictions[name]
    chosen = [point for point in prediction.curve if point.occupancy_warps in (1, 2, 4, 8, 12)]
    reference = {p.occupancy_warps: p.warps_per_cycle for p in answer.predictions["pipeline"].curve}
    rows = [
        [str(p.occupancy_warps), f"{p.warps_per_cycle:.4f}", f"{reference[p.occupancy_warps]:.4f}", cell(p.bound)]
        for p in chosen
    ]
    return [
        f"{said}warps per cycle over the warps of an SM. The thick line is this model, the thin one the simulation.",
        curves(answer, name),
        table(["warps", "warps per cycle", "simulation", "limited by"], rows),
    ]


def _formulas(module: ModuleType) -> Iterator[str]:
    """Public functions of the model's module, and those that it takes from other models."""
    own = [value for value in vars(module).values() if isinstance(value, FunctionType)]
    shared = {f"drywarp.models.{name}" for name in _SHARED}
    for function in own:
        at = function.__module__
        if function.__name__.startswith("_") or not at.startswith("drywarp.models.") or at in shared:
            continue
        taken = "" if at == module.__name__ else f" (from `{at.removeprefix('drywarp.models.')}`)"
        yield f"### `{function.__name__}`{taken}\n\n{docstring(inspect.getdoc(function) or '')}"
        yield code(_without_docstring(function), "python")


def _without_docstring(function: FunctionType) -> str:
    lines = inspect.getsource(function).splitlines()
    (node,) = ast.parse("\n".join(lines)).body
    assert isinstance(node, ast.FunctionDef)
    first = node.body[0]
    if ast.get_docstring(node) is not None and first.end_lineno is not None:
        del lines[first.lineno - 1 : first.end_lineno]
    return "\n".join(lines)
