"""The X-model: listed, not available.

Li, Song, Brugel, Kumar, Chavarría-Miranda and Corporaal, "X: a comprehensive analytic model for parallel
machines" (IPDPS 2016), which extends Transit by ILP and by a cache whose hit rate falls with the warps that
share it. Lemeire, Cornelis and Konstantinidis count it among Volkov's class without printing it; its
cache model asks for a fit to each kernel. `transit` is the part of it that the papers print.
"""

from __future__ import annotations

from .base import register
from .unavailable import Unavailable


@register("x_model")
class XModel(Unavailable):
    """Says why it is not available."""

    name = "x_model"
    summary = "Transit with ILP and a shared cache (Li et al. 2016); not available"
    reason = "no paper at hand prints the X-model's equations; `transit` is what it extends"
