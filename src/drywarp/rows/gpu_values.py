"""Which GPU a row is for, told by its values."""

from __future__ import annotations

import hashlib
from dataclasses import fields
from functools import lru_cache

from ..hardware import Gpu


@lru_cache(maxsize=64)
def values_hash(gpu: Gpu) -> str:
    """A hash of every value of a GPU: one that was changed in Python still has the hash of its file."""
    values = [repr(getattr(gpu, field.name)) for field in fields(gpu)]
    return hashlib.sha256("\0".join(values).encode()).hexdigest()
