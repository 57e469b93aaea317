"""Operands of texture and surface instructions by meaning.

    TEX.SCR.LL R6, R4, R8, R10, 0x0, 0x58, 3D, 0xb        sm_75 to sm_89, object in c[0x0][0x160]
    TEX.B.LL RZ, R4, R8, R12, 3D, 0x1                     the same, object in R12
    TEX.LL R6, R4, R8, R11, UR4, 0x0, 3D, 0xb             sm_90; without the 0x0 from sm_100 on

Results fill the second register and the one after it, then the first and the one after that, one for each bit in the
mask at the end. The mapping from registers to coordinates was derived from the compiled code of each of CUDA's texture
functions.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...instruction import RZ, Address, Constant, Immediate, Instruction, Operand, Predicate, Register, Special

FETCHES = frozenset({"TEX", "TLD", "TLD4", "TXD"})
SURFACE_ACCESSES = frozenset({"SULD", "SUST"})
_DIMENSIONS = {"1D": 1, "2D": 2, "3D": 3, "CUBE": 3}
_ALL_CHANNELS = 15


@dataclass(frozen=True, slots=True)
class TextureOperands:
    """What a texture or surface instruction reads and writes.

    `results` has one register per fetched channel, and `channels` lists those channels; `absent` is the predicate that
    is set if a texel is not resident. `shape` is as in `Texture.shape`. `handle` holds the object. `others` are
    additional registers read: level of detail, derivatives, stored data.
    """

    shape: str
    handle: Register | Constant
    coordinates: tuple[Register, ...]
    layer: Register | None = None
    results: tuple[Register, ...] = ()
    channels: tuple[int, ...] = ()
    absent: Predicate | None = None
    others: tuple[Register, ...] = ()


def texture_operands(instruction: Instruction) -> TextureOperands | None:
    """The operands of a fetch (see `FETCHES`); None for an unknown form."""
    operands = list(instruction.operands)
    absent = operands.pop(0) if operands and isinstance(operands[0], Predicate) else None
    last = operands.pop() if operands else None
    mask = _ALL_CHANNELS
    if isinstance(last, Immediate):
        mask, last = int(last.value), operands.pop() if operands else None
    shape = last.name if isinstance(last, Special) else ""
    handle = _take_handle(operands)
    registers = [o for o in operands if isinstance(o, Register)]
    dimensions = _DIMENSIONS.get(shape.removeprefix("ARRAY_"))
    if dimensions is None or len(registers) != len(operands) or len(registers) < 3:
        return None
    first, second, a, *rest = registers
    layered = shape.startswith("ARRAY_")
    sources = _sources(instruction, a, rest[0] if rest else None, dimensions + layered, handle is None)
    if sources is None:
        return None
    places, own_handle, others = sources
    # With explicit derivatives, the layer comes after the coordinates, otherwise before.
    layer = None if not layered else places[-1] if instruction.opcode == "TXD" else places[0]
    coordinates = places[:dimensions] if instruction.opcode == "TXD" else places[layered:]
    channels = tuple(c for c in range(4) if mask >> c & 1)
    homes = (second, _after(second, 1), first, _after(first, 1))
    used = handle if handle is not None else own_handle
    assert used is not None
    found = absent if isinstance(absent, Predicate) else None
    return TextureOperands(shape, used, coordinates, layer, homes[: len(channels)], channels, found, others)


def _sources(
    instruction: Instruction, a: Register, b: Register | None, count: int, bindless: bool
) -> tuple[tuple[Register, ...], Register | None, tuple[Register, ...]] | None:
    """Registers of layer and coordinates, the object's register if it is in one, and other registers read."""
    modifiers = instruction.modifiers
    level = any(m in ("LL", "LB") for m in modifiers)
    if "NDV" in modifiers or {"AOFFI", "PTP", "DC", "MS"} & set(modifiers):
        return None  # neighbouring lanes' derivatives, offsets, comparisons, samples: CUDA C++ has none of them
    if instruction.opcode == "TXD":
        start = 1 if bindless else 0
        places = tuple(_after(a, start + n) for n in range(count))
        derivatives = tuple(_after(b, n) for n in range(4)) if b is not None else ()
        return places, (a if bindless else None), derivatives
    if bindless:
        if b is None:
            return None
        return tuple(_after(a, n) for n in range(count)), b, ((_after(b, 1),) if level else ())
    if "SCR" in modifiers:
        # Two scalars are in two single registers, more of them in two pairs.
        if b is None:
            return ((a,), None, ()) if count == 1 and not level else None
        total = count + level
        places = (a, b) if total == 2 else (a, _after(a, 1), b, _after(b, 1))[:total]
        return (places[:count], None, places[count:]) if total <= 4 else None
    places = tuple(_after(a, n) for n in range(count))
    return places, None, ((b,) if b is not None and level else ())


def surface_operands(instruction: Instruction) -> TextureOperands | None:
    """The operands of a surface access (see `SURFACE_ACCESSES`); None for an unknown form."""
    operands: list[Operand] = [o for o in instruction.operands if not isinstance(o, Predicate)]
    shape = next((m for m in instruction.modifiers if m.removeprefix("ARRAY_") in _DIMENSIONS), "")
    shape = shape or next((_array_shape(m) for m in instruction.modifiers if m.endswith("_ARRAY")), "")
    handle = _take_handle(operands) or (operands.pop() if operands and isinstance(operands[-1], Register) else None)
    address = next((o for o in operands if isinstance(o, Address)), None)
    data = next((o for o in operands if isinstance(o, Register)), None)
    if not shape or data is None or address is None or address.base is None or len(operands) != 2:
        return None
    if not isinstance(handle, Register | Constant):
        return None
    layered = shape.startswith("ARRAY_")
    count = _DIMENSIONS[shape.removeprefix("ARRAY_")]
    base = address.base
    coordinates = tuple(_after(base, n) for n in range(count))
    layer = _after(base, count) if layered else None
    width = instruction.memory.width if instruction.memory else 4
    words = tuple(_after(data, n) for n in range(max(width // 4, 1)))
    if instruction.opcode == "SUST":
        return TextureOperands(shape, handle, coordinates, layer, others=words)
    return TextureOperands(shape, handle, coordinates, layer, words)


def _array_shape(modifier: str) -> str:
    """Turn `2D_ARRAY`, the spelling in surface instructions, into `ARRAY_2D`, that in texture instructions."""
    return f"ARRAY_{modifier.removesuffix('_ARRAY')}"


def _take_handle(operands: list[Operand]) -> Register | Constant | None:
    """Remove the object from the end: a bank and a word in it, or a uniform register; None if neither is there."""
    if len(operands) > 1 and isinstance(operands[-1], Immediate):
        last = operands.pop()
        bank = operands.pop()
        assert isinstance(last, Immediate)
        if isinstance(bank, Immediate):
            return Constant(int(bank.value), 4 * int(last.value))
        return bank if isinstance(bank, Register) and bank.uniform else None
    if operands and isinstance(operands[-1], Register) and operands[-1].uniform:
        register = operands.pop()
        assert isinstance(register, Register)
        return register
    return None


def _after(register: Register, distance: int) -> Register:
    """The register at a distance after another one; the zero register stays."""
    if register.index == RZ or not distance:
        return register
    return Register(register.index + distance, register.uniform)
