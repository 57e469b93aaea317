"""Builds the C core into the package (src/drywarp/core/README.md): run by hatchling, for editable installs too."""

from __future__ import annotations

import importlib.util
import os
import sysconfig
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CoreBuild(BuildHookInterface):
    """Compiles the C of `src/drywarp/core` and `src/drywarp/program` with the compiler at hand, else with ziglang."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """What the build needs beside hatchling: a C compiler, if there is none."""
        return [] if self._builder().compiler() else ["ziglang>=0.13"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and tag the wheel for this platform, or for the one that `DRYWARP_WHEEL_PLATFORM` names."""
        builder = self._builder()
        builder.build()
        builder.build(builder.CUDA_LIBRARY, builder.CUDA_FOLDER)
        here = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        platform = os.environ.get("DRYWARP_WHEEL_PLATFORM") or here
        build_data["tag"] = f"py3-none-{platform}"
        build_data["pure_python"] = False

    def _builder(self) -> ModuleType:
        path = Path(self.root) / "src" / "drywarp" / "core" / "build.py"
        spec = importlib.util.spec_from_file_location("drywarp_core_build", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
