"""Where NVIDIA's compiler library and disassembler lie, as pip installed them."""

from __future__ import annotations

import ctypes
import importlib.metadata
import importlib.util
import os
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


COMPILER_VARIABLE = "DRYWARP_NVRTC"
"""Environment variable with the path of another libnvrtc, such as that of the toolkit that a user builds with."""


@cache
def compiler_library() -> Path:
    """The NVRTC library that compiles. Raises ToolError where there is none."""
    chosen = os.environ.get(COMPILER_VARIABLE)
    if chosen:
        path = Path(chosen)
        if not path.is_file():
            raise ToolError(f"{COMPILER_VARIABLE}={chosen}: no such file (expected the path of a libnvrtc.so)")
        return path.resolve()
    return packaged_library()


@cache
def toolkit_headers() -> Path | None:
    """The headers of the toolkit that a chosen compiler belongs to; None where there are none, or none was chosen."""
    if not os.environ.get(COMPILER_VARIABLE):
        return None
    # lib64/libnvrtc.so of a toolkit, or nvidia/cuda_nvrtc/lib of a wheel with nvidia/cuda_runtime beside it.
    folder = compiler_library().parent.parent
    places = (folder / "include", folder.parent / "include", folder.parent / "cuda_runtime" / "include")
    return next((place for place in places if (place / "cuda_fp16.h").is_file()), None)


@cache
def packaged_library() -> Path:
    """The NVRTC library that came with drywarp. Raises ToolError where there is none."""
    folder = toolkit_folder() / "lib"
    found = sorted(folder.glob("libnvrtc.so.*")) or sorted(folder.glob("libnvrtc*.so*"))
    if not found:
        raise ToolError(f"NVRTC cannot be loaded from {folder}: it holds no libnvrtc")
    return found[0]


def _version_of(library: Path) -> str:
    major, minor = ctypes.c_int(), ctypes.c_int()
    try:
        ctypes.CDLL(str(library)).nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    except (OSError, AttributeError):
        return "unusable"
    return f"{major.value}.{minor.value} ({library})"


@cache
def tool_versions() -> dict[str, str]:
    """Versions of the packages that turn source into machine code, as recorded by pip.

    A compiler that was chosen by `COMPILER_VARIABLE` stands there with its path.
    """
    versions = {}
    for tool, package in (("nvrtc", "nvidia-cuda-nvrtc"), ("nvdisasm", "nvidia-cuda-nvdisasm")):
        try:
            versions[tool] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[tool] = "missing"
    if os.environ.get(COMPILER_VARIABLE):
        versions["nvrtc"] = _version_of(compiler_library())
    return versions


@cache
def library_folders() -> tuple[Path, ...]:
    """Where headers of NVIDIA's libraries for device code lie, as pip (`nvidia-curand`) or the toolkit put them."""
    toolkits = [os.environ.get(name, "") for name in ("CUDA_HOME", "CUDA_PATH")]
    places = [toolkit_folder(), *(Path(toolkit) for toolkit in toolkits if toolkit), Path("/usr/local/cuda")]
    found = [place / "include" for place in places if (place / "include" / "curand_kernel.h").is_file()]
    return tuple(found[:1])
