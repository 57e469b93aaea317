"""How functions are compiled that only compiled code calls."""

from __future__ import annotations

from numba import njit

inner = njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, error_model="numpy")
"""Without the wrappers that Python would need to call them, which take as long to compile as the functions."""
