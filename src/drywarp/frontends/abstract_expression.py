"""Small sums in abstract kernel files: `"alpha + 1"`, evaluated without giving the file any power.

Allowed are numbers, names, `+ - * / // % **`, comparisons, brackets, and the functions `min`, `max`,
`ceil`, `floor`, `cdiv` (a quotient rounded up). A comparison is 1 or 0.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping

Number = int | float

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
    """What is wrong with an expression, as one clause."""


def evaluate(text: str, names: Mapping[str, Number]) -> Number:
    """The value of an expression over `names`. Raises ExpressionError."""
    if len(text) > _LONGEST:
        raise ExpressionError(f"expected at most {_LONGEST} characters")
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ExpressionError(f"expected a sum such as '2 * n + 1', got {text!r}") from None
    try:
        return _value(tree.body, names)
    except (ArithmeticError, TypeError, RecursionError) as error:
        raise ExpressionError(f"{text!r} has no value: {error}") from None


def _value(node: ast.expr, names: Mapping[str, Number]) -> Number:
    value = _raw(node, names)
    if isinstance(value, complex) or not math.isfinite(value) or abs(value) > _LARGEST:
        raise ExpressionError("the value is out of range")
    return value


def _raw(node: ast.expr, names: Mapping[str, Number]) -> Number:
    match node:
        case ast.Constant(value=bool()):
            pass
        case ast.Constant(value=int() | float() as number):
            return number
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
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARE:
            return int(_COMPARE[type(op)](_value(left, names), _value(right, names)))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _FUNCTIONS and args:
            return _FUNCTIONS[name](*(_value(argument, names) for argument in args))
        case _:
            pass
    raise ExpressionError(
        f"expected numbers, names and + - * / // % ** min max ceil floor cdiv, got {ast.unparse(node)!r}"
    )
