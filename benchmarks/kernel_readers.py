"""Kernels and parameters of CUDA sources as drywarp reads them, against tree-sitter's CUDA grammar.

    pip install tree-sitter tree-sitter-cuda
    python -m benchmarks.kernel_readers FOLDER

Prints each kernel that the two read differently, then the counts, the files with syntax errors for the grammar, and the
time that each reader took. Where a name is overloaded, each reader may take another of its functions.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from drywarp.frontends.cuda.source import decode, find_kernels


def named(declarator: Any) -> str:
    """The name that a parameter's declarator introduces; empty for none."""
    while declarator is not None and declarator.type != "identifier":
        inner = declarator.child_by_field_name("declarator")
        kinds = ("identifier", "reference_declarator", "pointer_declarator", "array_declarator")
        inside = [child for child in declarator.named_children if child.type in kinds]
        declarator = inner or (inside[-1] if inside else None)
    return declarator.text.decode() if declarator is not None else ""


def by_grammar(parser: Any, text: str) -> tuple[dict[str, list[str]], bool]:
    """Parameter names by kernel, and whether the tree has errors."""
    tree = parser.parse(text.encode())
    found: dict[str, list[str]] = {}
    pending = [tree.root_node]
    while pending:
        node = pending.pop()
        pending += node.children
        if node.type not in ("function_definition", "declaration"):
            continue
        if not any(child.text == b"__global__" for child in node.children):
            continue
        function = node.child_by_field_name("declarator")
        while function is not None and function.type != "function_declarator":
            function = function.child_by_field_name("declarator")
        if function is not None:
            name = function.child_by_field_name("declarator").text.decode().split("::")[-1]
            listed = [p for p in function.child_by_field_name("parameters").named_children if "parameter" in p.type]
            found[name] = [n for p in listed if (n := named(p.child_by_field_name("declarator"))) != "void"]
    return found, tree.root_node.has_error


def main(folder: Path) -> None:
    import tree_sitter
    import tree_sitter_cuda

    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_cuda.language()))
    files = kernels = equal = errors = 0
    spent = [0.0, 0.0]
    for path in sorted(folder.rglob("*.cu")):
        text = decode(path.read_bytes())
        files += 1
        began = time.perf_counter()
        ours = {kernel.name: [one.name for one in kernel.parameters] for kernel in find_kernels(text)}
        between = time.perf_counter()
        theirs, wrong = by_grammar(parser, text)
        spent = [spent[0] + between - began, spent[1] + time.perf_counter() - between]
        errors += wrong
        for name in sorted(ours.keys() | theirs.keys()):
            kernels += 1
            equal += ours.get(name) == theirs.get(name)
            if ours.get(name) != theirs.get(name):
                print(f"{path.relative_to(folder)}: {name}: {ours.get(name)} against {theirs.get(name)}")
    print(f"{files} files, {kernels} kernels, {equal} read alike; {errors} files with errors for the grammar")
    print(f"drywarp {spent[0]:.2f} s, tree-sitter {spent[1]:.2f} s")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
