"""Safe evaluation of small expressions in user files and options, such as `"alpha + 1"`.

Allowed are numbers, names (including a profiler's dotted ones), `+ - * / // % **`, comparisons, `and or not`,
parentheses, and the functions `min`, `max`, `ceil`, `floor` and `cdiv` (division rounding up). A comparison yields 1
or 0. Strings can only be compared for equality.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from functools import lru_cache

Number = int | float
Value = int | float | str

_BINARY: dict[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Number, Number], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_FUNCTIONS: dict[str, Callable[..., Number]] = {
    "min": min,
    "max": max,
    "ceil": math.ceil,
    "floor": math.floor,
    "cdiv": lambda a, b: -(-a // b),
}
_LARGEST = 1e15
_LONGEST = 200


class ExpressionError(ValueError):
    """An invalid expression; the message is one clause."""


def evaluate(text: str, names: Mapping[str, Value]) -> Number:
    """The value of an expression over `names`. Raises ExpressionError."""
    tree = parsed(text)
    try:
        return _value(tree, names)
    except (ArithmeticError, TypeError, RecursionError) as error:
        raise ExpressionError(f"{text!r} has no value: {error}") from None


def names_in(text: str) -> frozenset[str]:
    """The names that an expression reads, with dotted names as a whole. Raises ExpressionError."""
    tree = parsed(text)
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    return frozenset(
        ast.unparse(node)
        for node in ast.walk(tree)
        if isinstance(node, ast.Name | ast.Attribute) and id(node) not in called | inner
    )


@lru_cache(maxsize=1024)
def parsed(text: str) -> ast.expr:
    """The syntax tree of an expression. Raises ExpressionError."""
    if len(text) > _LONGEST:
        raise ExpressionError(f"expected at most {_LONGEST} characters")
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ExpressionError(f"expected a sum such as '2 * n + 1', got {text!r}") from None


def _value(node: ast.expr, names: Mapping[str, Value]) -> Number:
    value = _raw(node, names)
    if isinstance(value, str):
        raise ExpressionError(f"{ast.unparse(node)} is the string {value!r}, expected a number")
    if isinstance(value, complex) or not math.isfinite(value) or abs(value) > _LARGEST:
        raise ExpressionError("the value is out of range")
    return value


def _raw(node: ast.expr, names: Mapping[str, Value]) -> Value:
    match node:
        case ast.Constant(value=bool()):
            pass
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.Attribute() if (name := ast.unparse(node)) in names:
            return names[name]
        case ast.Name(id=name):
            if name in names:
                return names[name]
            raise ExpressionError(f"unknown name {name!r}; known: {', '.join(names) or 'none'}")
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, names)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            first, second = _value(left, names), _value(right, names)
            if isinstance(op, ast.Pow) and abs(second) > 64:
                raise ExpressionError("expected an exponent of at most 64")
            return _BINARY[type(op)](first, second)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return int(not _value(operand, names))
        case ast.BoolOp(op=op, values=parts):
            # Short-circuit evaluation from left to right, so that an earlier operand can guard a later one.
            decides = isinstance(op, ast.Or)
            return int(decides if any(bool(_value(part, names)) is decides for part in parts) else not decides)
        case ast.Compare(left=left, ops=ops, comparators=others) if all(type(op) in _COMPARE for op in ops):
            sides = [left, *others]
            pairs = zip(sides, ops, others, strict=False)
            return int(all(_compared(first, op, second, names) for first, op, second in pairs))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _FUNCTIONS and args:
            return _FUNCTIONS[name](*(_value(argument, names) for argument in args))
        case _:
            pass
    raise ExpressionError(
        f"expected numbers, names and + - * / // % ** min max ceil floor cdiv, got {ast.unparse(node)!r}"
    )


def _compared(left: ast.expr, op: ast.cmpop, right: ast.expr, names: Mapping[str, Value]) -> bool:
    if isinstance(op, ast.Eq | ast.NotEq):
        first, second = (_text_or_value(side, names) for side in (left, right))
        if isinstance(first, str) or isinstance(second, str):
            return (str(first) == str(second)) is isinstance(op, ast.Eq)
    return _COMPARE[type(op)](_value(left, names), _value(right, names))


def _text_or_value(node: ast.expr, names: Mapping[str, Value]) -> Value:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    value = _raw(node, names)
    return value if isinstance(value, str) else _value(node, names)
