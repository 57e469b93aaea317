"""The boat hull model: listed, not available.

Nugteren and Corporaal, "The boat hull model: enabling performance prediction for parallel computing prior
to code development" (Computing Frontiers 2012): a roofline for each of several classes of algorithms,
chosen by hand before there is code. Lemeire, Cornelis and Konstantinidis (§2.1) name it without printing
it. (What Cornelis and Lemeire call a boat-hull shape is the law of one pipeline, another thing.)
"""

from __future__ import annotations

from .base import register
from .unavailable import Unavailable


@register("boat_hull")
class BoatHull(Unavailable):
    """Says why it is not available."""

    name = "boat_hull"
    summary = "a roofline for each class of algorithms (Nugteren and Corporaal 2012); not available"
    reason = "no paper at hand prints its equations, and it takes a class of algorithm instead of a kernel"
