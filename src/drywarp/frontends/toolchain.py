"""Where NVIDIA's compiler library and disassembler lie, as pip installed them."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from functools import cache
from pathlib import Path

from ..errors import ToolError


@cache
def toolkit_folder() -> Path:
    """The folder `nvidia/cu13` of the installed packages. Raises ToolError where it is missing."""
    spec = importlib.util.find_spec("nvidia")
    for place in spec.submodule_search_locations or () if spec else ():
        folder = Path(place) / "cu13"
        if folder.is_dir():
            return folder
    raise ToolError("NVRTC is not installed (expected: pip install nvidia-cuda-nvrtc nvidia-cuda-nvdisasm)")


@cache
def tool_versions() -> dict[str, str]:
    """Versions of the packages that turn source into machine code, as recorded by pip."""
    versions = {}
    for tool, package in (("nvrtc", "nvidia-cuda-nvrtc"), ("nvdisasm", "nvidia-cuda-nvdisasm")):
        try:
            versions[tool] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[tool] = "missing"
    return versions
