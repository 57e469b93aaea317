"""A real GPU through its driver: machine code loaded, launched and timed, and the clocks meanwhile.

Nothing here changes a setting of the card: no clock, no power limit, no mode. Needs `pip install 'drywarp[gpu]'` (the
driver's own bindings for Python) and a driver; without either, `open_card` says so in one line.
"""

from .attributes import CardAttributes
from .card import Card, CardFunction, open_card
from .clocks import Clocks
from .driver import DeviceError

__all__ = ["Card", "CardAttributes", "CardFunction", "Clocks", "DeviceError", "open_card"]
