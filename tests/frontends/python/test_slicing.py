"""Which part of a Python file a kernel needs."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from drywarp.errors import InputFileError, ToolError
from drywarp.frontends.python.execution import Surroundings
from drywarp.frontends.python.file import jit_functions, kernels
from drywarp.frontends.python.isolation import loaded
from drywarp.frontends.python.slicing import Statements

PROGRAM = '''
"""A program round a kernel."""
from __future__ import annotations
import sys, missing_framework as framework
import math
from math import floor, ceil as up
try:
    import missing_too
    HAS = True
except ImportError:
    HAS = False
sys.path.append("nowhere")
framework.seed(0)
WIDTH = 16
HEIGHT = WIDTH * 2
TABLE = {}
TABLE["a"] = 1
ROWS = [1]
ROWS.append(up(2.5))
UNUSED = framework.zeros(3)
x = framework.ones(WIDTH)
if HAS:
    STEP = 2
else:
    STEP = 3

def decorate(scale):
    return lambda function: (function, scale, TABLE, ROWS)

def helper(v):
    return v + STEP

@decorate(scale=HEIGHT)
def kernel(v, n=up(0.5)):
    x = helper(v)
    return [x * floor(i) for i in range(n)]

def main():
    framework.run(kernel)

main()
if __name__ == "__main__":
    WIDTH = 99
    main()
'''


def written(tmp_path: Path, text: str, name: str = "program.py") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def kept(text: str, name: str) -> list[str]:
    statements = Statements(ast.parse(text))
    return [ast.unparse(statements.all[n].node).split("\n")[0] for n in statements.needed(name)[0]]


def test_kept_is_what_the_kernel_names_and_no_more() -> None:
    assert kept(PROGRAM, "kernel") == [
        "from __future__ import annotations",
        "import sys",
        "from math import floor",
        "from math import ceil as up",
        "try:",
        "sys.path.append('nowhere')",
        "WIDTH = 16",
        "HEIGHT = WIDTH * 2",
        "TABLE = {}",
        "TABLE['a'] = 1",
        "ROWS = [1]",
        "ROWS.append(up(2.5))",
        "if HAS:",
        "def decorate(scale):",
        "def helper(v):",
        "@decorate(scale=HEIGHT)",
    ]


def test_what_is_kept_runs_where_the_whole_would_not(tmp_path: Path) -> None:
    path = written(tmp_path, PROGRAM)
    function, scale, table, rows = Surroundings(path, ast.parse(PROGRAM)).kernel("kernel")
    assert (scale, table, rows) == (32, {"a": 1}, [1, 3])
    assert function(1, 3) == [0, 4, 8]
    assert function.__code__.co_filename == str(path)
    assert PROGRAM.split("\n")[function.__code__.co_firstlineno - 1] == "@decorate(scale=HEIGHT)"


def test_local_names_need_no_globals_of_that_name() -> None:
    text = (
        "x = boom()\ny = boom()\ndef k(a):\n    x = a\n    def inner(y):\n        return y + z\n    return inner(x)\n"
    )
    text += "z = 1\n"
    assert kept(text, "k") == ["def k(a):", "z = 1"]


def test_star_imports_are_kept_where_a_name_is_unknown(tmp_path: Path) -> None:
    text = "from math import *\nfrom os.path import *\nA = 3\ndef k():\n    return {}\n"
    assert kept(text.format("A"), "k") == ["A = 3", "def k():"]
    assert len(kept(text.format("floor(A)"), "k")) == 4
    assert Surroundings(written(tmp_path, text), ast.parse(text.format("floor(2.5)"))).kernel("k")() == 2


def test_modules_beside_the_file_are_found(tmp_path: Path) -> None:
    written(tmp_path, "VALUE = 7\n", "sibling_of_kernel.py")
    text = "from sibling_of_kernel import VALUE\ndef k():\n    return VALUE\n"
    assert Surroundings(written(tmp_path, text), ast.parse(text)).kernel("k")() == 7


def test_a_file_of_a_package_finds_the_rest_of_it(tmp_path: Path) -> None:
    folder = tmp_path / "package_of_kernels" / "inner"
    folder.mkdir(parents=True)
    written(folder.parent, "", "__init__.py")
    written(folder, "", "__init__.py")
    written(folder, "VALUE = 7\n", "sibling.py")
    text = "from .sibling import VALUE as A\nfrom package_of_kernels.inner.sibling import VALUE as B\ndef k():\n"
    text += "    return A, B\n"
    assert Surroundings(written(folder, text), ast.parse(text)).kernel("k")() == (7, 7)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "import missing_framework as f\n@f.decorate\ndef k(): pass\n",
            r":1: kernel k needs the module 'missing_frame",
        ),
        ("A = 1\nB = A / 0\ndef k(n=B): pass\n", r":2: defining k failed: ZeroDivisionError: division by zero"),
        ("import sys\nA = sys.exit(3)\ndef k(n=A): pass\n", r"program\.py: exits the program while k is being defined"),
        ("def other(): pass\n", r"program\.py: does not define k \(expected at module level\)"),
        ("from . import x\n@x\ndef k(): pass\n", r":1: kernel k needs the name '\.x', which no file beside it defines"),
    ],
)
def test_failures_name_the_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputFileError, match=message) as caught:
        Surroundings(written(tmp_path, text), ast.parse(text)).kernel("k")
    assert "\n" not in str(caught.value)


def test_a_broken_installation_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, "raise AttributeError('unlike versions')\n", "broken_compiler.py")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ToolError, match=r"^k\.py: broken_compiler cannot be loaded: AttributeError: unlike versions$"):
        loaded("broken_compiler", "k.py")


KERNELS = """
import triton, numba.cuda
import triton.language as tl
from triton import jit as compiled, autotune
from numba import cuda
from numba import jit as host_jit
@triton.jit
def helper(x): return x
@autotune(configs=[], key=[])
@triton.heuristics({})
@compiled
def first(x): helper(x)
@triton.jit(do_not_specialize=["n"])
def second(x, n): helper(x)
@cuda.jit(device=True)
def on_device(x): return x
@numba.cuda.jit("void(int32[:])", fastmath=True)
def third(x): on_device(x)
@host_jit
def host(x): return x
def plain(x): return helper(x)
fourth = triton.jit(plain)
if True:
    @cuda.jit
    def fifth(x): pass
class Holder:
    @triton.jit
    def method(x): pass
"""


def test_kernels_are_found_and_helpers_told_apart() -> None:
    functions = jit_functions(ast.parse(KERNELS))
    assert [(f.name, f.kind) for f in functions] == [
        ("helper", "triton"),
        ("first", "triton"),
        ("second", "triton"),
        ("third", "numba"),
        ("fourth", "triton"),
        ("fifth", "numba"),
    ]
    assert [f.name for f in kernels(functions)] == ["first", "second", "third", "fourth", "fifth"]


def test_functions_that_all_call_each_other_are_all_kernels() -> None:
    functions = jit_functions(ast.parse("import triton\n@triton.jit\ndef a(): b()\n@triton.jit\ndef b(): a()\n"))
    assert [f.name for f in kernels(functions)] == ["a", "b"]
