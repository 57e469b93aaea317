"""GPU files of this package."""

from pathlib import Path

FOLDER = Path(__file__).parent
