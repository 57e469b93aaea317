"""Small faults, found in the syntax tree of a source file, or in the words of one in C: what a slip would change."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

COMPARE = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
ARITHMETIC = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv, ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd, ast.BitXor: ast.BitAnd,
}  # fmt: skip
ORDERED = (ast.Sub, ast.Div, ast.FloorDiv, ast.Mod, ast.LShift, ast.RShift)
TWINS = {"min": "max", "max": "min", "any": "all", "all": "any", "minimum": "maximum", "maximum": "minimum"}
NUMBER = re.compile(
    r"^(?P<key>[\w.\"-]+\s*=\s*(?:\{[^#]*?\bvalue\s*=\s*)?)(?P<number>-?\d[\d_]*(?:\.\d+)?)(?=\s*[,}#]|\s*$)"
)


@dataclass(frozen=True)
class Change:
    """One fault: in `file` the characters from `start` to `end`, which are `old`, become `new`."""

    file: str
    line: int
    kind: str
    start: int
    end: int
    old: str
    new: str

    def applied(self, text: str) -> str:
        """The file with this fault in it."""
        if text[self.start : self.end] != self.old:
            raise ValueError(f"{self.file}:{self.line}: expected {self.old!r}")
        return text[: self.start] + self.new + text[self.end :]

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {' '.join(self.old.split())} -> {' '.join(self.new.split())}"


def changes(path: Path, name: str) -> list[Change]:
    """All faults that this file can have; `name` is how they call it."""
    text = path.read_text(encoding="utf-8")
    found = {".toml": _numbers, ".c": _of_c, ".h": _of_c}.get(path.suffix, _of_python)
    return [*found(text, name)]


C_WORD = re.compile(
    r"(?P<left_out>/\*.*?\*/|//[^\n]*|^\s*\#(?:\\\n|[^\n])*|\"(?:\\.|[^\"])*\"|'(?:\\.|[^'])+'|\b(?:static|extern|enum)\b[^;{(]*;)"
    r"|(?<= )(?P<operator><=|>=|==|!=|&&|\|\||<<|>>|[<>+\-*/%&|^])(?= )"
    r"|(?<=\w )(?P<compound>\+=|-=|\*=|\|=|&=|<<=|>>=)(?= )"
    r"|(?<![\w.])(?P<number>\d+)(?![\w.])",
    re.DOTALL | re.MULTILINE,
)
C_OPERATORS = {
    "comparison": {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="},
    "and / or": {"&&": "||", "||": "&&"},
    "operator": {
        "+": "-",
        "-": "+",
        "*": "+",
        "/": "*",
        "%": "/",
        "<<": ">>",
        ">>": "<<",
        "&": "|",
        "|": "&",
        "^": "&",
    },
}
C_COMPOUNDS = {"+=": "-=", "-=": "+=", "*=": "+=", "|=": "&=", "&=": "|=", "<<=": ">>=", ">>=": "<<="}


def _of_c(text: str, name: str) -> Iterator[Change]:
    """Of a source in C: another operator, or a number that is higher by one. Some of them do not compile."""
    for word in C_WORD.finditer(text):
        group, old = word.lastgroup, word.group()
        if group == "number":
            made = [("off by one", str(int(old) + 1))]
        elif group == "compound":
            made = [("operator", C_COMPOUNDS[old])]
        elif group == "operator":
            made = [(kind, others[old]) for kind, others in C_OPERATORS.items() if old in others]
        else:
            continue
        for kind, new in made:
            yield Change(name, text.count("\n", 0, word.start()) + 1, kind, word.start(), word.end(), old, new)


def _numbers(text: str, name: str) -> Iterator[Change]:
    """Of a data file: each number ten per cent higher, whole ones at least by one."""
    at = 0
    for line, row in enumerate(text.splitlines(keepends=True), 1):
        found = NUMBER.match(row)
        if found and not re.match(r"\s*(schema|version|year|date|accessed)", row):
            old = found["number"]
            value = float(old) if "." in old else int(old)
            new = str(value + max(1, round(value * 0.1))) if isinstance(value, int) else f"{value * 1.1:.6g}"
            yield Change(name, line, "number", at + found.start("number"), at + found.end("number"), old, new)
        at += len(row)


def _of_python(text: str, name: str) -> Iterator[Change]:
    tree = ast.parse(text)
    starts = [0]
    for row in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(row.encode()))
    data = text.encode()

    def offset(line: int, column: int) -> int:
        return len(data[: starts[line - 1] + column].decode())

    for node in _behaviour(tree):
        for kind, new in _faults(node):
            start, end = offset(node.lineno, node.col_offset), offset(node.end_lineno, node.end_col_offset)
            old, source = text[start:end], ast.unparse(new)
            if isinstance(node, ast.expr) and not isinstance(node, ast.Constant):
                source = f"({source})"
            if source.strip("()") != old.strip("()"):
                yield Change(name, node.lineno, kind, start, end, old, source)


def _behaviour(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that say what the program does: no annotations, docstrings, checks of types or texts of errors."""
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "type_params", "bases", "keywords_of_class"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST):
                continue
            if isinstance(child, ast.Raise | ast.Assert | ast.JoinedStr | ast.ImportFrom | ast.Import):
                continue
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                continue
            if isinstance(child, ast.Assign) and any(_is_type(target) for target in child.targets):
                continue
            yield child
            yield from _behaviour(child)


def _is_type(target: ast.expr) -> bool:
    """Whether what is assigned here is a name for a type: `T = TypeVar(…)`, `Words = npt.NDArray[…]`."""
    return isinstance(target, ast.Name) and bool(re.match(r"[A-Z][a-z]|[A-Z]$|__", target.id))


def _faults(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """What may be wrong at one node, with the kind of fault."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARE:
        yield "comparison", _with(node, ops=[COMPARE[type(node.ops[0])](), *node.ops[1:]])
    elif isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC and not _text(node):
        yield "operator", _with(node, op=ARITHMETIC[type(node.op)]())
        if isinstance(node.op, ORDERED):
            yield "swapped operands", _with(node, left=node.right, right=node.left)
        if isinstance(node.op, ast.Add | ast.Mult):
            yield "dropped term", node.left
    elif isinstance(node, ast.AugAssign) and type(node.op) in ARITHMETIC and not _text(node):
        yield "operator", _with(node, op=ARITHMETIC[type(node.op)]())
    elif isinstance(node, ast.BoolOp):
        yield "and / or", _with(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
        yield "dropped term", _with(node, values=node.values[1:]) if len(node.values) > 2 else node.values[0]
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield "dropped sign", node.operand
    elif isinstance(node, ast.IfExp):
        yield "condition", _with(node, body=node.orelse, orelse=node.body)
    elif isinstance(node, ast.Constant) and type(node.value) is int and abs(node.value) < 1 << 40:
        yield "off by one", ast.Constant(node.value + 1)
    elif isinstance(node, ast.Constant) and type(node.value) is float and node.value:
        yield "off by a tenth", ast.Constant(node.value * 1.1)
    elif isinstance(node, ast.Constant) and type(node.value) is bool:
        yield "condition", ast.Constant(not node.value)
    elif isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in TWINS:
            new = copy.deepcopy(node)
            if isinstance(new.func, ast.Attribute):
                new.func.attr = TWINS[name]
            elif isinstance(new.func, ast.Name):
                new.func.id = TWINS[name]
            yield "min / max", new
        if len(node.args) == 2 and not any(isinstance(a, ast.Starred) for a in node.args) and name not in TWINS:
            yield "swapped arguments", _with(node, args=node.args[::-1])


def _text(node: ast.BinOp | ast.AugAssign) -> bool:
    """Whether this puts texts, types or tuples together rather than numbers."""
    kinds = (ast.JoinedStr, ast.Tuple, ast.List)
    sides = [node.left, node.right] if isinstance(node, ast.BinOp) else [node.value]
    if any(isinstance(s, kinds) or (isinstance(s, ast.Constant) and isinstance(s.value, str | bytes)) for s in sides):
        return True
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr) and any("None" in ast.dump(s) for s in sides)


def _with(node: ast.AST, **fields: object) -> ast.AST:
    new = copy.copy(node)
    for field, value in fields.items():
        setattr(new, field, value)
    return new
