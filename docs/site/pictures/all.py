"""Every picture that a page of `docs/` includes, by its file's name."""

from __future__ import annotations

from drywarp.analysis.every_model import compare_models

from ..links import ROOT
from .curves import bounds
from .lanes import EXAMPLE, by_subsystem, by_warp
from .route import route

FOLDER = ROOT / "docs" / "pictures"


def drawn() -> dict[str, str]:
    """Simulates what the pictures show."""
    return {
        "route.svg": route(),
        "one-warp.svg": by_subsystem(1, arrows=True),
        "three-warps.svg": by_subsystem(3, arrows=False),
        "three-warps-by-warp.svg": by_warp(3),
        "ten-warps.svg": by_subsystem(10, arrows=False),
        "bounds.svg": bounds(compare_models(EXAMPLE, occupancies=range(1, 13), models=["pipeline"], runs=20)),
    }
