"""MDM, the GPU memory divergence model: listed, not available.

Wang, Jahre, Adileh, Wang and Eeckhout, "Modeling emerging memory-divergent GPU applications" (IEEE CAL
2019) and "MDM: the GPU memory divergence model" (MICRO 2020). It takes the place of GPUMech's
contention terms: requests in batches of the L1's MSHRs, queues in the network and in DRAM. None of the
papers that drywarp follows prints its equations.
"""

from __future__ import annotations

from .base import register
from .unavailable import Unavailable


@register("mdm")
class Mdm(Unavailable):
    """Says why it is not available."""

    name = "mdm"
    summary = "GPUMech with batches of divergent requests and their queues (Wang et al. 2019); not available"
    reason = "no paper at hand prints MDM's equations, and no GPU file has the MSHRs and network that they take"
