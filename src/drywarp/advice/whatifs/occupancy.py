"""The same code with another number of blocks on an SM at once, whatever resource stands against it."""

from __future__ import annotations

from dataclasses import replace

from ..setting import Setting
from .base import WhatIf


def resident_blocks(blocks: int) -> WhatIf:
    """So many blocks per SM; where each access is served stays as it was."""

    def apply(setting: Setting) -> Setting | None:
        if blocks == setting.binding.blocks_per_sm:
            return None
        return replace(setting, binding=replace(setting.binding, blocks_per_sm=blocks))

    return WhatIf(f"{blocks} blocks per SM", "code", apply)
