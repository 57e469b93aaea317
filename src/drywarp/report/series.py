"""Several launches as text: one row each, and the time of all together."""

from __future__ import annotations

from rich.text import Text

from ..launch_series import LaunchSeries
from ..result import limit_words
from .gpus import aligned
from .units import percent_text, time_text


def render_series(series: LaunchSeries) -> Text:
    """The total first, then a row a launch, and the notes of each."""
    first = series.launches[0].analysis
    rows = [["launch", "times", "time each", "share", "occupancy", "limited by"]]
    notes = []
    for launch in series.launches:
        answer = launch.analysis
        share = launch.times * answer.time_s / series.time_s if series.time_s else 0.0
        rows.append(
            [
                launch.name,
                str(launch.times),
                time_text(answer.time_s),
                percent_text(share),
                percent_text(answer.occupancy.fraction),
                limit_words(answer.limiter),
            ]
        )
        notes += [f"note: {launch.name}: {note}" for note in answer.notes]
    lines = aligned(rows)
    return Text.assemble(
        (time_text(series.time_s), "bold green"),
        f"  predicted on {first.gpu_title} for all launches\n\n",
        (lines[0], "dim"),
        "\n" + "\n".join(lines[1:]),
        *(("\n" + note, "yellow") for note in notes),
    )
