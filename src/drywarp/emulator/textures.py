"""Texture and surface objects of a launch, and how an instruction finds the one that it names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from ..errors import EmulationError
from ..kernel.instruction import Instruction
from ..kernel.texture import Texture
from .decode import Decoder, place
from .frame import Frame
from .memory import DeviceMemory, Region
from .operands import Fetch

LAYOUT_NOTE = (
    "textures and surfaces are taken to lie row by row; how a GPU lays out arrays is not public, so sectors and"
    " hit rates of their accesses are those of that layout"
)


@dataclass(frozen=True)
class BoundTexture:
    """A texture or surface and the memory that holds it."""

    texture: Texture
    region: Region
    memory: DeviceMemory

    def refuse(self, d: Decoder, i: Instruction, what: str) -> NoReturn:
        """Raise for a use that does not fit the object."""
        extents = ",".join(map(str, self.texture.extents))
        raise EmulationError(
            f"{place(d.kernel, i)}: {self.region.name} is a {self.texture.shape} "
            f"{'surface' if self.texture.surface else 'texture'} of [{extents}] and {what}: {i.text}"
        )


def of_each_object(
    d: Decoder, i: Instruction, f: Frame, handle: Fetch, surface: bool = False
) -> Iterator[tuple[BoundTexture, npt.NDArray[np.bool_]]]:
    """The objects that the executing lanes name, each with its lanes."""
    f.machine.notes.add(LAYOUT_NOTE)
    handles, lanes = f.spread(handle(f)), f.lanes()
    for number in np.unique(handles[lanes]).tolist():
        found = d.memory.objects.get(number)
        if found is None:
            kind = "surface" if surface else "texture"
            known = ", ".join(region.name for _, region in d.memory.objects.values())
            raise EmulationError(
                f"{place(d.kernel, i)}: no {kind} object has the handle {number:#x} (the launch has: {known or 'none'})"
                f"; give one as in --arg name={kind}:f32[1024,1024]: {i.text}"
            )
        bound = BoundTexture(*found, d.memory)
        if bound.texture.surface != surface:
            bound.refuse(d, i, f"is used as a {'surface' if surface else 'texture'}")
        yield bound, lanes & (handles == np.uint32(number))
