"""Numbers with units as reports write them; they are made where results may use them too."""

from __future__ import annotations

from ..units import bytes_text, count_text, energy_text, percent_text, time_text

__all__ = ["bytes_text", "count_text", "energy_text", "percent_text", "time_text"]
