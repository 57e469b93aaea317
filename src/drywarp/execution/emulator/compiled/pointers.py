"""Addresses as typed pointers in compiled code.

Arrays would work, but Numba counts references to them wherever they are passed, which costs more than most instructions
and takes long to compile. Pointers are plain numbers. The caller keeps the arrays alive, and passes their length where
it matters. For any element width, reads give an int64 and writes truncate one: there are no other number types to mix
up.
"""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.core.imputils import lower_builtin
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, models, register_model

from ....support.stored_code import cached


class Pointer(types.Type):  # type: ignore[misc]
    """The type of a pointer to integers of some bits, signed or not."""

    def __init__(self, bits: int, signed: bool) -> None:
        self.bits, self.signed = bits, signed
        super().__init__(f"Pointer({'int' if signed else 'uint'}{bits})")

    @property
    def key(self) -> tuple[int, bool]:
        """The key by which two such types are equal."""
        return self.bits, self.signed


@register_model(Pointer)
class _PointerModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Pointer) -> None:
        super().__init__(manager, kind, ir.IntType(kind.bits).as_pointer())


@infer_global(operator.getitem)
class _Read(AbstractTemplate):  # type: ignore[misc]
    def generic(self, args: Any, keywords: Any) -> Any:
        if isinstance(args[0], Pointer) and isinstance(args[1], types.Integer):
            return signature(types.int64, args[0], types.int64)
        return None


@infer_global(operator.setitem)
class _Write(AbstractTemplate):  # type: ignore[misc]
    def generic(self, args: Any, keywords: Any) -> Any:
        if isinstance(args[0], Pointer) and isinstance(args[1], types.Integer):
            return signature(types.none, args[0], types.int64, types.int64)
        return None


@lower_builtin(operator.getitem, Pointer, types.int64)  # type: ignore[misc]
def _read(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    value = builder.load(builder.gep(args[0], [args[1]]))
    if sig.args[0].bits == 64:
        return value
    widen = builder.sext if sig.args[0].signed else builder.zext
    return widen(value, ir.IntType(64))


@lower_builtin(operator.setitem, Pointer, types.int64, types.int64)  # type: ignore[misc]
def _write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    pointer, index, value = args
    if sig.args[0].bits < 64:
        value = builder.trunc(value, ir.IntType(sig.args[0].bits))
    builder.store(value, builder.gep(pointer, [index]))
    return context.get_dummy_value()


def _pointer_to(bits: int, signed: bool) -> tuple[Pointer, Any]:
    kind = Pointer(bits, signed)
    element = ir.IntType(bits).as_pointer()

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], element)

    return kind, intrinsic(lambda context, address: (kind(types.int64), generate))


longs_at, int64s = _pointer_to(64, True)
signed_words_at, int32s = _pointer_to(32, True)
words_at, uint32s = _pointer_to(32, False)
halves_at, uint16s = _pointer_to(16, False)
signed_bytes_at, int8s = _pointer_to(8, True)
bytes_at, uint8s = _pointer_to(8, False)
"""Types, and the functions that turn addresses into pointers."""


# How functions are compiled: those called only by compiled code, and those called from Python.

inner = njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, error_model="numpy")
"""Without the wrappers that calls from Python would need, which take as long to compile as the functions."""

SOURCES = ("execution/emulator/compiled", "support/stored_code.py")
"""The source of the compiled code: none of its modules imports from elsewhere."""
outer = cached(*SOURCES, error_model="numpy", nogil=True)
"""Cached on disk."""
