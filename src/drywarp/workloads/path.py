"""The path of an abstract kernel's warps: a node and a slot for every copy of every instruction."""

from __future__ import annotations

from dataclasses import replace

from ..bound import BoundNode, BoundPath, Item, Repeat, to_ticks
from ..frontends.abstract import Step
from .costs import Machine, node_of
from .settings import Settings

MOST_COPIES = 4096


def make_path(settings: Settings, machine: Machine, stall: float) -> BoundPath:
    """The path; `stall` cycles lie between an instruction and the next where the file gives none."""
    return _Path(settings, machine, stall).made()


class _Path:
    """Makes the path: a node and a slot for every copy of every instruction."""

    def __init__(self, settings: Settings, machine: Machine, stall: float) -> None:
        self.settings, self.machine, self.stall = settings, machine, stall
        self.costs: dict[str, BoundNode] = {}
        self.nodes: list[BoundNode] = []
        self.copies: dict[str, list[int]] = {}

    def made(self) -> BoundPath:
        program = self.settings.file.kernel.program
        self._number(program, "program")
        items = self._items(program, "program")
        if not self.nodes:
            raise self.settings.file.error("program", "expected at least one instruction")
        return BoundPath(tuple(self.nodes), items, len(self.nodes))

    def _number(self, steps: list[Step], key: str) -> None:
        """Places of all instructions, so that one may need another of the turn before."""
        for number, step in enumerate(steps):
            if step.body:
                self._number(step.body, f"{key}[{number}].body")
            elif step.id:
                count = self.settings.whole(f"{key}[{number}].copies", step.copies)
                if count > MOST_COPIES:
                    raise self.settings.file.error(f"{key}[{number}].copies", f"expected at most {MOST_COPIES}")
                first = sum(len(copies) for copies in self.copies.values())
                self.copies[step.id] = list(range(first, first + count))

    def _items(self, steps: list[Step], key: str) -> tuple[Item, ...]:
        items: list[Item] = []
        for number, step in enumerate(steps):
            here = f"{key}[{number}]"
            if step.loop is None:
                items += self._instruction(step, here)
                continue
            turns = self.settings.whole(f"{here}.loop", step.loop)
            items.append(Repeat(turns, self._items(step.body or [], f"{here}.body")))
        return tuple(items)

    def _instruction(self, step: Step, key: str) -> list[int]:
        name, class_ = step.id or "", step.class_ or ""
        if class_ not in self.costs:
            self.costs[class_] = node_of(class_, self.machine, self.settings)
        cost = self.costs[class_]
        stall = self.stall if step.stall is None else float(self.settings.number(f"{key}.stall", step.stall))
        places = self.copies[name]
        for place in places:
            waits = [slot for other in step.needs for slot in self.copies[other]]
            waits += [slot for other in step.previous for slot in ([place] if other == name else self.copies[other])]
            sets = -1 if cost.async_result else place
            self.nodes.append(
                replace(
                    cost,
                    instruction=place,
                    waits=tuple(dict.fromkeys(waits)),
                    sets=sets,
                    stall_ticks=to_ticks(stall),
                )
            )
        return places
