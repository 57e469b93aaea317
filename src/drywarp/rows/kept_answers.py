"""Answers of rows kept on disk: predicted once for a machine code, launch, GPU and settings, then read.

An answer is only kept where the emulation that it stands on is: nothing that a limit of time cut short. Its name is a
hash of all that it depends on, the sources of drywarp among it.
"""

from __future__ import annotations

import hashlib

import msgspec

from ..emulations import Kept
from ..folders import sources_digest
from ..frontends import cache as disk
from ..hardware import Gpu
from .answer import Answer
from .gpu_values import values_hash

FOLDER = "answers"
MOST_BYTES = 256 << 20
"""Bytes of all answers together: some hundred thousand of them."""


def key_of(place: Kept, gpu: Gpu, settings: str) -> str:
    """The name of an answer; empty where the emulation has no lasting place. `settings` is all else that was asked."""
    if not place.key:
        return ""
    sources = sources_digest(suffixes=(".py", ".toml"))
    return hashlib.sha256("\0".join((place.key, values_hash(gpu), settings, sources)).encode()).hexdigest()


def read(key: str) -> Answer | None:
    """The answer that an earlier run has left."""
    data = disk.read(FOLDER, key) if key else None
    try:
        return None if data is None else msgspec.json.decode(data, type=Answer)
    except msgspec.MsgspecError:
        return None


def keep(key: str, answer: Answer) -> None:
    """Leave an answer for later runs; does nothing where it cannot."""
    if key:
        disk.write(FOLDER, key, msgspec.json.encode(answer), MOST_BYTES)
