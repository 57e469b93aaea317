"""A local page to try kernels on: paste one, choose a GPU, move occupancy, λ and Λ, and see what that does.

For one user on one machine: it listens on the loopback interface alone, and answers who knows its token.
"""

from __future__ import annotations

from .limits import ServeLimits
from .server import open_server, serve

__all__ = ["ServeLimits", "open_server", "serve"]
