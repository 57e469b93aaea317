"""What a Python file holds, for a list of its kernels: nothing is run or compiled."""

from __future__ import annotations

import ast
from collections.abc import Collection
from pathlib import Path

from .embedded import embedded_sources
from .file import jit_functions, kernels, outermost, parsed

_BUFFER, _INDICES, _NUMBER = f"f32[{1 << 20}]:random", f"i64[{1 << 20}]:random(0,64)", 1024


def listed_kernels(path: Path, text: str) -> tuple[dict[str, dict[str, str] | None], list[str]]:
    """The kernels of a file, and why some are left out, as sentences.

    For a Triton or Numba function there is a likely value for each parameter that a launch has to state, by what its
    text does with it, a ``block`` for Numba and a ``config`` for a tuned Triton kernel; None for CUDA C++ in a string.
    Raises InputFileError if the file is not Python.
    """
    tree = parsed(path, text)
    sources, passed = embedded_sources(tree, text, str(path))
    named = {node.name: node for node in outermost(tree.body) if isinstance(node, ast.FunctionDef)}
    found: dict[str, dict[str, str] | None] = {}
    for function in kernels(jit_functions(tree)):
        node = named.get(function.name)
        found[function.name] = likely_values(tree, node, function.kind) if node else {}
        if function.kind == "numba":
            found[function.name] = {"block": "256", **(found[function.name] or {})}
    for source in sources:
        found.update(dict.fromkeys(source.kernels))
    return found, passed


def likely_values(tree: ast.Module, node: ast.FunctionDef, kind: str) -> dict[str, str]:
    """A buffer for what the function addresses memory by, and numbers for the rest; without what a tuner decides."""
    pointers = _addressed(node, kind)
    indices = _loaded_into_addresses(node, pointers) if kind == "triton" else set()
    set_by_tuner = {
        key.value
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and ast.unparse(call.func).endswith(("Config", "heuristics"))
        for one in call.args[:1]
        if isinstance(one, ast.Dict)
        for key, given in zip(one.keys, one.values, strict=True)
        if isinstance(key, ast.Constant) and key.value not in _constants(given)  # a heuristic of what is given itself
    }
    needed = node.args.args[: len(node.args.args) - len(node.args.defaults)]
    wanted = {a.arg: "constexpr" in ast.unparse(a.annotation or a) for a in needed if a.arg not in set_by_tuner}
    asked = {ast.unparse(test) for one in ast.walk(node) if isinstance(one, ast.If) for test in _operands(one.test)}
    types = _types(node) & wanted.keys()
    blocks = sum(constant and name not in {*asked, *types} for name, constant in wanted.items())
    strides = 0
    values = {"config": "0"} if kind == "triton" and _is_autotuned(node) else {}
    for name, constant in wanted.items():
        if name in pointers:
            values[name] = _INDICES if name in indices else _BUFFER
        elif name in types:
            values[name] = "tl.float32"
        elif constant and name in asked:
            values[name] = "1"
        elif constant:
            values[name] = str(_NUMBER if blocks == 1 else 64)
        elif name.lower().strip("_").startswith("eps"):
            values[name] = "1e-6"
        elif "stride" in name:
            values[name] = str(_NUMBER if strides % 2 == 0 else 1)  # a row, then an element
            strides += 1
        else:
            values[name] = str(_NUMBER)
    return values


def _types(node: ast.FunctionDef) -> set[str]:
    """Names that stand for a type: `x.to(T)`, `tl.zeros(…, dtype=T)`."""
    calls = [one for one in ast.walk(node) if isinstance(one, ast.Call)]
    given = [
        call.args[0] for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == "to" and call.args
    ]
    given += [keyword.value for call in calls for keyword in call.keywords if keyword.arg == "dtype"]
    return {one.id for one in given if isinstance(one, ast.Name)}


def _constants(node: ast.expr) -> set[object]:
    return {one.value for one in ast.walk(node) if isinstance(one, ast.Constant)}


def _loaded_into_addresses(node: ast.FunctionDef, pointers: Collection[str]) -> set[str]:
    """The pointers of a Triton function to what it adds to pointers: indices, offsets, labels."""
    assigned = [n for n in ast.walk(node) if isinstance(n, ast.Assign | ast.AugAssign)]
    origin: dict[str, str] = {}
    for one in assigned:
        target = one.targets[0] if isinstance(one, ast.Assign) else one.target
        loads = [n for n in ast.walk(one.value) if isinstance(n, ast.Call) and ast.unparse(n.func).endswith("load")]
        bases = [_names(load.args[0]) & {*pointers} for load in loads if load.args]
        if bases and bases[0]:
            origin[ast.unparse(target)] = min(bases[0])
    sums = [_names(n) for n in ast.walk(node) if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Add | ast.Sub)]
    sums += [_names(one) for one in assigned if isinstance(one, ast.AugAssign)]
    return {origin[name] for one in sums if one & {*pointers} for name in one if name in origin} - {
        name for name in pointers if name in origin
    }


def _names(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


def _operands(test: ast.expr) -> list[ast.expr]:
    """What a condition consists of: the names in `A`, `not A`, `A and B`."""
    match test:
        case ast.BoolOp(values=parts):
            return [one for part in parts for one in _operands(part)]
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _operands(operand)
    return [test]


def _is_autotuned(node: ast.FunctionDef) -> bool:
    calls = (one.func if isinstance(one, ast.Call) else one for one in node.decorator_list)
    return any(ast.unparse(call).split(".")[-1] == "autotune" for call in calls)


def _addressed(node: ast.FunctionDef, kind: str) -> set[str]:
    """The parameters that are pointers or arrays: what loads and stores start from, or what has an index."""
    parameters = {a.arg for a in node.args.args}
    if kind == "numba":
        bases = {ast.unparse(n.value) for n in ast.walk(node) if isinstance(n, ast.Subscript | ast.Attribute)}
        return bases & parameters
    assigned = {
        ast.unparse(n.targets[0]): n.value for n in ast.walk(node) if isinstance(n, ast.Assign) and len(n.targets) == 1
    }
    calls = [n for n in ast.walk(node) if isinstance(n, ast.Call) and n.args]
    starts = [n.args[0] for n in calls if ast.unparse(n.func).split(".")[-1].startswith(_TAKES_ADDRESS)]
    found: set[str] = set()
    for start in starts:
        seen: set[str] = set()
        at: ast.expr | None = start
        while at is not None:
            while isinstance(at, ast.BinOp):
                at = at.left
            name = ast.unparse(at)
            if name in parameters:
                found.add(name)
            at = None if name in seen else assigned.get(name)
            seen.add(name)
    return found


_TAKES_ADDRESS = ("load", "store", "atomic_", "make_block_ptr", "make_tensor_descriptor")
