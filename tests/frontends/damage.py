"""Ways to damage a file: what a broken disk, a broken download or somebody with intent may hand over."""

from __future__ import annotations

import random
import struct

import zstandard

from drywarp.frontends.binary import containers as fatbin
from drywarp.frontends.binary.elf import parse_elf

HUGE = (0, 1, 2, 7, 8, 15, 16, 63, 64, 0x7F, 0x80, 0xFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
HUGER = (*HUGE, 1 << 32, (1 << 48) - 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)
"""Numbers at which counts, sizes and places go wrong."""

TOKENS = (
    *("`(", "(*", '(*"', "[", "]", "c[", "desc[", "{", "}", ",", "@", "@!P", "|", "R", "UR", ".", "0x", "/*", "*/"),
    *("/* 0x", " */", "//## File", ".section\t.text.", ";", ":", "\n", "\\\n", '"', "'", "\0", "<", ">", "<<<", ">>>"),
    *("(", ")", "#", "#include ", "template <", "__global__ ", "namespace a {", ".entry k (", ".param ", "\r", "\t"),
    *(".target ", ".file 1", "\ufeff", "é", "\udcff", "9" * 5000, "0x" + "f" * 5000, "A" * 5000, "drywarp: --grid "),
)
"""What the readers of text look for, and what none expects."""


def code_of(cubin: bytes) -> dict[str, bytes]:
    """The machine code of a CUBIN by symbol, as a listing without encodings needs it."""
    sections = parse_elf(cubin, "seed").sections
    return {s.name.removeprefix(".text."): s.data for s in sections if s.name.startswith(".text.")}


def damaged_bytes(data: bytes, chance: random.Random) -> bytes:
    """The data with one to some damages."""
    body = bytearray(data)
    for _ in range(chance.choice((1, 1, 1, 2, 5, 20))):
        body = _damaged_bytes(body, chance)
    return bytes(body)


def _damaged_bytes(body: bytearray, chance: random.Random) -> bytearray:
    size = len(body)
    if not size:
        return body
    at = chance.randrange(size)
    kind = chance.randrange(9)
    if kind == 0:
        return body[:at]
    if kind == 1:
        body[at] ^= 1 << chance.randrange(8)
    elif kind == 2:
        body[at] = chance.randrange(256)
    elif kind in (3, 4):
        # Headers hold aligned words: those at the start and, in ELF files, at the end are the ones that count.
        at = chance.choice((at, chance.randrange(min(size, 128)), size - 1 - chance.randrange(min(size, 4096)))) & ~3
        word = struct.pack("<Q", chance.choice(HUGER)) if kind == 4 else struct.pack("<I", chance.choice(HUGE))
        body[at : at + len(word)] = word[: size - at]
    elif kind == 5:
        end = min(size, at + chance.randrange(1, 256))
        body[at:end] = bytes(chance.randrange(256) for _ in range(end - at))
    elif kind == 6:
        del body[at : at + chance.randrange(1, 64)]
    elif kind == 7:
        other = chance.randrange(size)
        body[at : at + 64] = body[other : other + 64]
    else:
        body[at:at] = bytes(chance.randrange(1, 64))
    return body


def damaged_text(text: str, chance: random.Random) -> str:
    """The text with one to some damages."""
    for _ in range(chance.choice((1, 1, 1, 2, 5, 20))):
        text = _damaged_text(text, chance)
    return text


def _damaged_text(text: str, chance: random.Random) -> str:
    if not text:
        return text
    at = chance.randrange(len(text))
    kind = chance.randrange(9)
    if kind == 0:
        return text[:at]
    if kind == 1:
        return text[:at] + chr(chance.randrange(1, 256)) + text[at + 1 :]
    if kind == 2:
        return text[:at] + chance.choice(TOKENS) + text[at:]
    if kind == 3:
        return text[:at] + text[at + chance.randrange(1, 40) :]
    if kind == 4:
        other = chance.randrange(len(text))
        return text[:at] + text[other : other + chance.randrange(1, 200)] + text[at:]
    if kind == 5:
        # Long runs are where regular expressions take for ever.
        return text[:at] + chance.choice(TOKENS)[:20] * chance.choice((10, 1000, 5000)) + text[at:]
    if kind == 6:
        return text[:at] + chance.choice(" \t\n") * chance.choice((10, 1000, 20000)) + text[at:]
    lines = text.split("\n")
    line = chance.randrange(len(lines))
    if kind == 7:
        del lines[line : line + chance.randrange(1, 5)]
    else:
        words = lines[line].split(" ")
        chance.shuffle(words)
        lines[line] = " ".join(words)
    return "\n".join(lines)


def entry(kind: int, sm: int, flags: int, packed: bytes, size: int) -> bytes:
    """One entry of a fat binary: `packed` for `sm`, which says that it unpacks to `size` bytes."""
    stored = packed + bytes(-len(packed) % 8)
    head = struct.pack("<HHIQI", kind, 0x101, 64, len(stored), len(packed) if flags else 0)
    return head + struct.pack("<IHHI", 0, 8, 1, sm).ljust(20, b"\0") + struct.pack("<QQQ", flags, 0, size) + stored


def fat_binary(*entries: bytes) -> bytes:
    """A fat binary of these entries."""
    body = b"".join(entries)
    return struct.pack("<IHHQ", fatbin.MAGIC, 1, 16, len(body)) + body


def container(cubin: bytes, chance: random.Random) -> bytes:
    """A fat binary with a CUBIN in it, packed or not, and a PTX text."""
    packed, flags = (zstandard.ZstdCompressor().compress(cubin), 0x8000) if chance.random() < 0.5 else (cubin, 0)
    text = b".version 8.0\n.target sm_80\n.visible .entry k(.param .u64 a) { ret; }\n\0"
    return fat_binary(entry(2, 80, flags, packed, len(cubin) if flags else 0), entry(1, 75, 0, text, 0))


def host_elf(cubin: bytes, chance: random.Random) -> bytes:
    """The least executable that holds one."""
    section = container(cubin, chance)
    names = b"\0.nv_fatbin\0.shstrtab\0"
    data, padded = section + bytes(-len(section) % 8), names + bytes(-len(names) % 8)
    offset = 64 + len(data) + len(padded)
    header = b"\x7fELF\x02\x01\x01" + bytes(9)
    header += struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, 0, 0, offset, 0, 64, 56, 0, 64, 3, 2)
    table = bytes(64) + struct.pack("<IIQQQQIIQQ", 1, 1, 2, 0, 64, len(section), 0, 0, 8, 0)
    table += struct.pack("<IIQQQQIIQQ", 12, 3, 0, 0, 64 + len(data), len(names), 0, 0, 1, 0)
    return header + data + padded + table
