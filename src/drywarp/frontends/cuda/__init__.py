"""CUDA C++: compiler options as users of nvcc type them, and as the compilers that drywarp runs take them."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...errors import UsageError

FLAG = "--compiler-option"
"""The option of the command line, for messages."""
_SEPARATE = "--relocatable-device-code="
RELOCATABLE = f"{_SEPARATE}true"
"""Compiler flag for code that is linked afterwards: calls to functions in other files stay open."""


def _known() -> dict[str, list[str]]:
    """The names in nvcc_options.txt, by kind."""
    text = Path(__file__).with_name("nvcc_options.txt").read_text(encoding="utf-8")
    lines = [line.split() for line in text.splitlines() if not line.startswith("#")]
    return {kind: [name for first, *names in lines if first == kind for name in names] for kind, *_ in lines}


_KNOWN = _known()
_SHORT = dict(name.split("=") for name in _KNOWN["short"])
_TAKEN = (*_KNOWN["valued"], *_KNOWN["switch"])
_WITH_VALUE = (*_KNOWN["valued"], *_KNOWN["host_valued"])
_WITHOUT = (*_KNOWN["switch"], *_KNOWN["host_switch"])
_CLANG = {"--use_fast_math": "-ffast-math", "--fmad=false": "-ffp-contract=off", "--fmad=true": "-ffp-contract=fast"}


@dataclass(frozen=True, slots=True)
class CudaOptions:
    """Compiler options that a user may set: `-D`, `-I`, `--std`, the register cap, and others in nvcc's spelling.

    `compiler_options` may hold any option of nvcc. Macros, include folders, the standard and the register cap among
    them become the fields of that meaning, unless these are set. Raises UsageError for an option that is unknown.
    """

    defines: Mapping[str, str] | None = None
    includes: Sequence[str] = ()
    std: str | None = None
    max_registers: int | None = None
    compiler_options: Sequence[str] = ()

    def __post_init__(self) -> None:
        kept: list[str] = []
        defines: dict[str, str] = {}
        includes: list[str] = []
        for name, value in _read(self.compiler_options):
            if name == "define-macro":
                defines.update([value.partition("=")[::2]])
            elif name == "include-path":
                includes += value.split(",")
            elif name == "std" and self.std is None:
                object.__setattr__(self, "std", value)
            elif name == "maxrregcount" and self.max_registers is None:
                object.__setattr__(self, "max_registers", _registers(value))
            elif name in ("device-c", "relocatable-device-code"):
                kept = [option for option in kept if not option.startswith(_SEPARATE)]
                kept.append(f"{_SEPARATE}{_truth(value or 'true')}")
            elif name not in ("std", "maxrregcount"):
                kept.append(f"--{name}={value}" if value else f"--{name}")
        if defines:
            object.__setattr__(self, "defines", {**defines, **(self.defines or {})})
        object.__setattr__(self, "includes", (*self.includes, *includes))
        object.__setattr__(self, "compiler_options", tuple(kept))

    def flags(self) -> list[str]:
        """The options as NVRTC spells them."""
        flags = [f"-D{name}={value}" if value else f"-D{name}" for name, value in (self.defines or {}).items()]
        flags += [f"-I{folder}" for folder in self.includes]
        if self.std:
            flags.append(f"--std={self.std}")
        if self.max_registers:
            flags.append(f"--maxrregcount={self.max_registers}")
        return [*flags, *self.compiler_options]

    def over(self, own: CudaOptions) -> CudaOptions:
        """These options, completed by the source's `own` options where unset."""
        return CudaOptions(
            {**(own.defines or {}), **(self.defines or {})},
            (*self.includes, *own.includes),
            self.std or own.std,
            self.max_registers or own.max_registers,
            (*own.compiler_options, *self.compiler_options),
        )

    def assembler_flags(self, origin: str) -> list[str]:
        """The options as ptxas takes them. Raises UsageError for those that only a compiler of CUDA C++ has."""
        flags = [f"--maxrregcount={self.max_registers}"] if self.max_registers else []
        for option in self._of_the_code:
            name, _, value = option.partition("=")
            if name != "--ptxas-options":
                raise UsageError(f"{origin}: {FLAG} {option}: PTX is assembled (expected -Xptxas or -maxrregcount)")
            flags += value.split(",")
        return flags

    def refuse(self, origin: str, what: str) -> None:
        """Raise UsageError if there are compiler options, which do not apply to `what`."""
        if self._of_the_code:
            raise UsageError(f"{origin}: {FLAG} {self._of_the_code[0]}: does not apply to {what}")

    def clang_flags(self, origin: str) -> list[str]:
        """The options as clang takes them for an AMD GPU. Raises UsageError for those without a counterpart."""
        if unknown := [option for option in self._of_the_code if option not in _CLANG]:
            known = ", ".join(_CLANG)
            raise UsageError(f"{origin}: {FLAG} {unknown[0]}: has no counterpart for AMD GPUs (expected {known})")
        return [_CLANG[option] for option in self._of_the_code]

    @property
    def _of_the_code(self) -> list[str]:
        """The compiler options that do not only say how the code is to be linked."""
        return [option for option in self.compiler_options if not option.startswith(_SEPARATE)]


def _truth(value: str) -> str:
    if value not in ("true", "false"):
        raise UsageError(f"{FLAG} -rdc={value}: expected true or false")
    return value


def _registers(value: str) -> int | None:
    if not value.isdecimal():
        raise UsageError(f"{FLAG} -maxrregcount={value}: expected a whole number")
    return int(value) or None


def _read(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The options that may change a kernel's machine code: long name, and value or an empty text."""
    left = iter([part for word in words for part in _parts(word)])
    for word in left:
        name, equals, value = word.lstrip("-").partition("=")
        if not word.startswith("-"):
            raise UsageError(f"{FLAG} {word!r}: expected an option of nvcc, as in --compiler-option=-use_fast_math")
        attached = next((one for one in _KNOWN["attached"] if word.startswith(f"-{one}") and word != f"-{one}"), "")
        if attached and name not in (*_WITH_VALUE, *_WITHOUT) and word[1] != "-":
            name, value, equals = attached, word[len(attached) + 1 :].removeprefix("="), "="
        name = _SHORT.get(name, name)
        if name in _KNOWN["architecture"]:
            raise UsageError(f"{FLAG} {word}: --gpu chooses the architecture")
        if name in _WITH_VALUE and not equals:
            if not (value := next(left, "")):
                raise UsageError(f"{FLAG} {word}: expected a value")
        elif name not in (*_WITH_VALUE, *_WITHOUT):
            near = difflib.get_close_matches(name, (*_TAKEN, *_SHORT), 1)
            hint = f"did you mean -{near[0]}?" if near else "expected an option of nvcc, such as -use_fast_math"
            raise UsageError(f"{FLAG} {word}: unknown ({hint})")
        if name in _TAKEN:
            yield name, value


def _parts(word: str) -> list[str]:
    try:
        return shlex.split(word)
    except ValueError:
        raise UsageError(f"{FLAG} {word!r}: unclosed quotation mark") from None


def known_options(words: Sequence[str]) -> CudaOptions:
    """The options of a program that compiles at run time (CuPy, PyCUDA, Kernel Tuner); unknown ones are ignored."""
    taken: list[str] = []
    left = [part for word in words for part in word.split()]
    while left:
        for count in (2, 1):
            try:
                CudaOptions(compiler_options=left[:count])
            except UsageError:
                continue
            taken += left[:count]
            break
        del left[:count]
    return CudaOptions(compiler_options=taken)
