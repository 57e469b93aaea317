"""A real GPU through its driver: loads, launches and times machine code, and reads the clocks.

Nothing here changes a setting of the GPU: no clock, no power limit, no mode. Needs `pip install 'drywarp[gpu]'` (the
driver's own Python bindings) and a driver; without either, `open_card` raises an error of one line.
"""

from .attributes import CardAttributes, Clocks, DeviceError
from .card import Card, CardFunction, open_card

__all__ = ["Card", "CardAttributes", "CardFunction", "Clocks", "DeviceError", "open_card"]
