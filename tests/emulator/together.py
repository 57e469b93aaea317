"""Compile the kernels of a test file as one module: nvdisasm and NVRTC take longer to start than for most kernels."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from drywarp.errors import DrywarpError
from drywarp.frontends.binary.cubin import kernels_of
from drywarp.frontends.cuda import CudaOptions
from drywarp.frontends.cuda.build import compile_translation
from drywarp.frontends.cuda.compile import INLINE_NAME, compile_cuda, name_parameters
from drywarp.frontends.cuda.nvrtc import gather
from drywarp.frontends.cuda.source import find_kernels
from drywarp.kernel.kernel import Kernel

KERNEL = 'extern "C" __global__'
APART = re.compile(r"\btemplate\b|__constant__|__managed__|printf|assert|^\s*(static )?__device__[^(]*[;=]", re.M)
"""What a source has that says more about its module than the kernel: names of variables, tables of the compiler."""
GIVEN = {"request", "no_nvcc", "tests_of_the_file"}
"""Fixtures that every test has, and none asks for."""
FEW = 3


class Asked(BaseException):
    """A test has asked for a kernel."""


class Kernels:
    """The kernels that the tests of one file ask for first, compiled together when the first is asked for."""

    def __init__(self) -> None:
        self.tests: list[Any] = []
        self.known: dict[tuple[str, str], Kernel] = {}
        self.asked: list[tuple[str, str]] | None = None

    def begin(self, tests: Iterable[Any]) -> None:
        """Another file, with these tests."""
        self.tests, self.known = list(tests), {}

    def kernel(self, source: str, arch: str) -> Kernel:
        """The only kernel of a source."""
        if self.asked is not None:
            self.asked.append((source, arch))
            raise Asked
        if self.tests and fits(source):
            tests, self.tests = self.tests, []
            self._ask(tests)
        return self.known.get((source, arch)) or compile_cuda(source, arch=arch)

    def _ask(self, tests: Iterable[Any]) -> None:
        """Run each test that takes no fixtures up to where it asks for a kernel, and compile those kernels."""
        self.asked = asked = []
        for test in tests:
            params = test.callspec.params if hasattr(test, "callspec") else {}
            if {*test.fixturenames} - GIVEN <= {*params}:
                with suppress(Asked, Exception, pytest.fail.Exception, pytest.skip.Exception):
                    test.obj(**{name: value for name, value in params.items() if name in test.fixturenames})
        self.asked = None
        wanted = [one for one in dict.fromkeys(asked) if fits(one[0])]
        for arch, alignment in {(arch, alignment_of(source)) for source, arch in wanted}:
            sources = [one for one, its in wanted if (its, alignment_of(one)) == (arch, alignment)]
            if len(sources) >= FEW:
                # What cannot stand in one module is compiled alone.
                with suppress(DrywarpError):
                    self.known.update({(s, arch): k for s, k in zip(sources, together(sources, arch), strict=True)})


def fits(source: str) -> bool:
    """Whether a source is a kernel and what it calls."""
    return source.count("__global__") == 1 and KERNEL in source and not APART.search(source)


def alignment_of(source: str) -> int:
    """The largest alignment that a source asks for: it rounds up the shared memory of all kernels of a module."""
    return max(map(int, re.findall(r"(?:alignas|__align__)\((\d+)\)", source)), default=0)


def together(sources: list[str], arch: str) -> list[Kernel]:
    """The kernels of several sources, compiled as one module; each keeps its lines and its name."""
    includes: dict[str, None] = {}
    parts = []
    for number, source in enumerate(sources):
        lines = source.replace(KERNEL, "__global__").split("\n")
        for at, line in enumerate(lines):
            if line.lstrip().startswith("#include"):
                includes[line.strip()], lines[at] = None, ""
        parts += [f"namespace s{number} {{", f'#line 1 "{INLINE_NAME}"', *lines, "}"]
    options = CudaOptions()
    translation = gather("\n".join([*includes, *parts]), INLINE_NAME, None, [])
    made = compile_translation(translation, arch, [], options)
    found = {one.name: one for one in kernels_of(made.cubin, made.listing, arch, INLINE_NAME, made.log).values()}
    kernels = []
    for number, source in enumerate(sources):
        (declared,) = find_kernels(source)
        kernel = name_parameters(found[f"s{number}::{declared.name}"], declared, "", translation, options)
        kernels.append(replace(kernel, name=declared.name, symbol=declared.name, source_file=INLINE_NAME))
    return kernels
