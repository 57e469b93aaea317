"""Whether threads that wait in loops wait in vain: the same state of the whole wave, seen again.

Only while nothing but such loops runs is the state looked at, in bursts that lie ever further apart, so
that a long loop which does get on costs little.
"""

from __future__ import annotations

import hashlib

from .groups import Groups
from .machine import Machine

PATIENCE = 2048
"""Steps inside loops that wait for others before the first look."""
_LOOKS = 256
"""Looks of one burst."""
_LATER = 8
"""How many times further away the next burst is."""


class Standstill:
    """Watches one wave. A state that comes back comes back for ever: no clock is part of it.

    `since` is the step from which on nothing but such loops has run, `after` how many steps more it takes
    before the state is looked at.
    """

    def __init__(self, machine: Machine, groups: Groups) -> None:
        self._machine, self._groups = machine, groups
        self.since = 0
        self.after = PATIENCE
        self._seen: set[bytes] = set()

    def progress(self, step: int) -> None:
        """Note that something ran which is not in such a loop."""
        self.since = step
        if self._seen or self.after > PATIENCE:
            self.after = PATIENCE
            self._seen.clear()

    def certain(self, step: int) -> bool:
        """Whether nobody will get any further; to be asked every now and then."""
        if step - self.since < self.after:
            return False
        state = self._state()
        if state in self._seen:
            return True
        self._seen.add(state)
        if len(self._seen) == _LOOKS:
            self._seen.clear()
            self.after = _LATER * (step - self.since)
        return False

    def _state(self) -> bytes:
        machine, groups = self._machine, self._groups
        digest = hashlib.blake2b(digest_size=16)
        for array in (
            machine.registers, machine.uniform, machine.predicates, machine.uniform_predicates, machine.barriers,
            machine.live, groups.pc, groups.mask, groups.state, groups.yielded,
        ):  # fmt: skip
            digest.update(array.data)
        return digest.digest()
