"""Tables of measurements for the tests, and the launch that goes with them. The times are made up."""

from __future__ import annotations

from pathlib import Path

SAXPY = Path(__file__).parents[2] / "examples" / "saxpy.cu"
HEADER = "bx,n,median_us,status\n"
ROWS = [
    "64,65536,3.9,Ok",
    "128,65536,3.1,Ok",
    "256,65536,3.0,Ok",
    "512,65536,3.2,Ok",
    "1024,65536,,Failed",
    "64,262144,6.5,Ok",
    "128,262144,5.4,Ok",
    "256,262144,5.2,Ok",
    "512,262144,5.5,Ok",
]
LAUNCH = {
    "grid": "cdiv(n,bx)",
    "block": "bx",
    "args": {"n": "n", "a": "2.0", "x": "f32[n]:random", "y": "f32[n]:random"},
    "macros": [],
}
"""How a row becomes a launch, as `validate` takes it."""
FLAGS = "--grid cdiv(n,bx) --block bx --arg n=n --arg a=2.0 --arg x=f32[n]:random --arg y=f32[n]:random --macros ,"


def saxpy_table(folder: Path, rows: list[str] | None = None, name: str = "saxpy.csv") -> Path:
    path = folder / name
    path.write_text(HEADER + "\n".join(ROWS if rows is None else rows) + "\n")
    return path
