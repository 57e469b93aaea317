"""How functions are compiled: those that only compiled code calls, and those that Python calls."""

from __future__ import annotations

from numba import njit

from ...stored_code import cached

inner = njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, error_model="numpy")
"""Without the wrappers that Python would need to call them, which take as long to compile as the functions."""

SOURCES = ("emulator/compiled",)
"""What compiled code is made of: no module of it imports from elsewhere."""
outer = cached(*SOURCES, error_model="numpy", nogil=True)
"""Kept on disk."""
