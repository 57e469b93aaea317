"""Which kernel of several is meant, where only symbols tell them apart: machine code and PTX."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..errors import UsageError
from ..kernel.kernel import Kernel
from .cubin import plain_name


def chosen(found: Mapping[str, Kernel], entry: str | None, origin: str) -> Kernel:
    """The kernel that `entry` names: by symbol, or by its plain name where only one has that.

    `found` maps symbols to kernels. Raises UsageError listing them.
    """
    names = {symbol: plain_name(symbol) for symbol in found}
    plain = list(names.values())
    # Instances of one template share a name; their symbols tell them apart.
    listed = ", ".join(sorted(name if plain.count(name) == 1 else symbol for symbol, name in names.items()))
    if entry is None:
        if len(found) == 1:
            return next(iter(found.values()))
        raise UsageError(f"{origin}: several kernels, name one with --entry: {listed}")
    matches = [symbol for symbol, name in names.items() if entry in (symbol, name, name.split("::")[-1])]
    if len(matches) == 1:
        return replace(found[matches[0]], name=entry)
    if matches:
        raise UsageError(f"{origin}: {entry} is ambiguous, name a symbol with --entry: {', '.join(sorted(matches))}")
    raise UsageError(f"{origin}: no kernel named {entry!r}; it holds: {listed}")
