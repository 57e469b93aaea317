"""A local page for trying out kernels: paste one, choose a GPU, vary occupancy, λ and Λ, and see the effect.

For one user on one machine: it listens only on the loopback interface, and every request must carry its token.
"""

from __future__ import annotations

from .asked import ServeLimits
from .server import open_server, serve

__all__ = ["ServeLimits", "open_server", "serve"]
