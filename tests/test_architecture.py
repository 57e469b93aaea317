"""Data flows one way, and a file can be read in one sitting (docs/architecture.md): one test for each rule."""

from __future__ import annotations

import ast
from pathlib import Path

from .architecture import ANYWHERE, ROOMS, ROOT, TIMINGS_ALONE, allowed, imports, modules, room_of, table, tree_of

DOCS = Path(__file__).parents[1] / "docs" / "architecture.md"


def test_every_module_lies_in_a_room() -> None:
    beside = {room_of(name) for name in modules()} - set(ROOMS)
    assert beside == {"", "__main__", *ANYWHERE}


def test_imports_follow_the_arrows() -> None:
    wrong = [
        f"{one.importer}:{one.line} imports {one.imported}"
        for one in imports()
        if room_of(one.imported) not in (room_of(one.importer), *ANYWHERE, *allowed(one.importer))
        and one.importer not in ("", "__main__")
    ]
    assert wrong == []


def test_no_file_imports_itself_by_way_of_others() -> None:
    waits: dict[str, set[str]] = {name: set() for name in modules() if name}
    for one in imports():
        if one.importer:
            waits[one.importer].add(one.imported)
    # What imports nothing that is left can be taken away; what stays lies on a cycle, or leads to one.
    while free := {name for name, needs in waits.items() if not needs & set(waits)}:
        waits = {name: needs for name, needs in waits.items() if name not in free}
    assert waits == {}


def test_what_is_fitted_comes_from_timings_alone() -> None:
    knowing = {"hardware", "analysis", "models", "memory", "pipeline", "workload"}
    found = [one for one in imports() if one.importer.startswith(TIMINGS_ALONE) and room_of(one.imported) in knowing]
    assert found == []


def test_starting_the_program_loads_neither_numpy_nor_the_stages() -> None:
    """`--help` should not wait for them: they are imported where they are used."""
    heavy = {"numpy", "rich", "msgspec"}
    for path in (ROOT / "__init__.py", *sorted((ROOT / "cli").glob("*.py"))):
        for node in tree_of(path).body:
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not {n.split(".")[0] for n in names} & heavy, f"{path.name}: line {node.lineno}"
            assert "analysis.stages" not in names, f"{path.name}: line {node.lineno}"


MOST_FILES, MEDIAN, NINETIETH = 450, 160, 330
LONGEST_FUNCTION, MOST_POSITIONAL = 80, 8


def test_files_are_few_and_short() -> None:
    lengths = sorted(len(path.read_text(encoding="utf-8").splitlines()) for path in modules().values())
    assert len(lengths) <= MOST_FILES
    assert lengths[len(lengths) // 2] < MEDIAN
    assert lengths[len(lengths) * 9 // 10] < NINETIETH


def test_functions_are_short_and_take_few_arguments_by_position() -> None:
    wrong = []
    for name, path in modules().items():
        for node in ast.walk(tree_of(path)):
            if not isinstance(node, ast.FunctionDef):
                continue
            lines = (node.end_lineno or 0) - node.lineno + 1
            taken = [a.arg for a in (*node.args.posonlyargs, *node.args.args) if a.arg not in ("self", "cls")]
            if lines > LONGEST_FUNCTION or len(taken) > MOST_POSITIONAL:
                wrong.append(f"{name}.{node.name}: {lines} lines, {len(taken)} arguments by position")
    assert wrong == []


def test_no_name_is_bound_twice_in_a_file() -> None:
    """The second constant of a name would silently change what the first one's functions do."""
    twice = []
    for name, path in modules().items():
        bound: list[str] = []
        for node in tree_of(path).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                bound.append(node.name)
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                parts = [part for target in targets for part in ast.walk(target)]
                bound += [p.id for p in parts if isinstance(p, ast.Name) and isinstance(p.ctx, ast.Store)]
        twice += [f"{name}: {one}" for one in sorted(set(bound)) if bound.count(one) > 1]
    assert twice == []


def test_the_table_in_the_docs_is_the_one_that_the_rules_make() -> None:
    assert table() in DOCS.read_text(encoding="utf-8"), "python -m tests.architecture prints it"


def test_tests_read_public_names_only() -> None:
    """What deserves a test of its own deserves a public name."""
    private = []
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        ours: set[str] = set()
        for node in ast.walk(tree_of(path)):
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
