"""The run of a whole program as text."""

from __future__ import annotations

from collections import Counter

from ..analysis.result import limit_words
from ..program.result import ProgramRun
from ..support.text import bytes_text, count_text, percent_text, plain, time_text
from .tables import aligned

_MOST_CRITICAL = 5
_VISIBLE = 0.01  # share of the time by which its two ends have to differ to be shown


def render_program(run: ProgramRun) -> str:
    """Time first, then kernels by time, copies, the critical path, and what is missing."""
    title = f"{run.devices} x {run.gpu_title}" if run.devices > 1 else run.gpu_title
    busy = f"the device is busy for {time_text(run.busy_s)} of it"
    head = f"{time_text(run.time_s)} on {title}, predicted{_band_text(run)}; {busy}"
    nothing = "no launched kernel was selected by --only, --skip and --launches"
    nothing = nothing if run.left_out else "no kernel was launched"
    parts = [head if run.spans else f"{nothing} and nothing copied on {run.gpu_title}", *missing_text(run)]
    if run.kernels:
        rows = [["kernel", "launches", "time", "share", "mean", "limited by", "occupancy"]]
        for one in run.kernels:
            found = one.longest
            rows.append(
                [
                    plain(one.kernel, 60),
                    str(one.launches),
                    time_text(one.total_s) if found else "unknown",
                    percent_text(one.share) if found else "",
                    time_text(one.mean_s) if found else "",
                    limit_words(found.limiter) if found else "",
                    percent_text(found.occupancy.fraction) if found else "",
                ]
            )
        parts.append("\n".join(aligned(rows)))
    if run.copies:
        rows = [["copies", "number", "time", "bytes"]]
        rows += [[one.kind, str(one.count), time_text(one.total_s), bytes_text(one.bytes)] for one in run.copies]
        parts.append("\n".join(aligned(rows)))
    if run.critical:
        path = ", ".join(f"{plain(name, 60)} {time_text(time)}" for name, time in run.critical[:_MOST_CRITICAL])
        rest = len(run.critical) - _MOST_CRITICAL
        parts.append(f"critical path: {path}" + (f", and {rest} more" if rest > 0 else ""))
    notes = program_notes(run)
    ends = [f"note: {note}" for note in notes] + check_text(run)
    return "\n\n".join(parts) + "\n\n" + "\n".join(ends) + "\n"


def check_text(run: ProgramRun) -> list[str]:
    """Faults that a GPU would not show, each in a line, and how many; nothing without a check."""
    if run.check is None:
        return []
    lines = [""]
    for launch, one in run.check.problems:
        where = f"launch {launch}: {plain(one.kernel, 200)} at {one.where}" if one.kernel else one.where
        who = f", block {one.block} thread {one.thread}" if one.block else ""
        times = f" ({one.count} times)" if one.count > 1 else ""
        lines.append(f"{one.kind}: {where}{who}: {plain(one.text, 400)}{times}")
    count, checked = run.problems, sum(one.launches for one in run.kernels) - run.check.unchecked
    found = f"{count} problem{'s' * (count != 1)}" if count else "no problems"
    rest = f"; not checked: {run.check.unchecked}" if run.check.unchecked else ""
    return [*lines, f"check: {found}; launches checked: {checked}{rest}"]


def program_notes(run: ProgramRun) -> list[str]:
    """What was emulated, left out and kept, and what is assumed."""
    computed = sum(one.computed for one in run.kernels)
    instructions = count_text(sum(launch.count * launch.outcome.warp_instructions for launch in run.launches))
    launched = sum(one.launches for one in run.kernels)
    notes = (
        [f"{computed} of {launched} launches were emulated in full ({instructions} warp instructions)"]
        if launched
        else []
    )
    if sampled := [one for one in run.launches if one.outcome.waits]:
        by_kernel = Counter[str]()
        for one in sampled:
            by_kernel[one.kernel] += one.count
        count, most = sum(by_kernel.values()), by_kernel.most_common(_MOST_CRITICAL)
        named = ", ".join(f"{plain(name, 60)} {number}" for name, number in most)
        more = f", and {len(by_kernel) - len(most)} more" if len(by_kernel) > len(most) else ""
        notes.append(
            f"sampled: {count} launch{'es' * (count != 1)}, whose results the host did not read ({named}{more});"
            " each is given the time of the first launch of the same kernel and extents"
        )
    notes += _estimated_text(run)
    if run.left_out:
        count = sum(number for _, number in run.left_out)
        some = ", ".join(f"{plain(name, 60)} {number}" for name, number in run.left_out[:_MOST_CRITICAL])
        more = f", and {len(run.left_out) - _MOST_CRITICAL} more" if len(run.left_out) > _MOST_CRITICAL else ""
        text = f"left out: {count} launches ({some}{more}), emulated, but neither predicted nor counted in any time"
        notes.append(text)
    if kept := {one.outcome.kept for one in run.launches if one.outcome.kept}:
        notes.append(f"kept: {len(kept)} launches, whose files hold the program's memory")
    notes += [ASSUMED, *(plain(note, 300) for note in run.notes)]
    return notes


def _band_text(run: ProgramRun) -> str:
    """Between which times the program's lies as far as launches were estimated, where that makes a difference."""
    low, high = run.band_s
    text = f" ({time_text(low)} to {time_text(high)}, as some launches are estimated)"
    return text if high - low > _VISIBLE * run.time_s else ""


def _estimated_text(run: ProgramRun) -> list[str]:
    some = sorted((one for one in run.kernels if one.estimated), key=lambda one: -one.total_s)
    named = []
    for one in some[:_MOST_CRITICAL]:
        low, high = one.pace_s or (0.0, 0.0)
        count = f"{one.predictions} prediction{'s' * (one.predictions != 1)}"
        spread = f", which differ by a factor of {high / low:.3g}" if low and one.predictions > 1 else ""
        named.append(f"{one.estimated} of {one.launches} launches of {plain(one.kernel, 60)} from {count}{spread}")
    more = f"; and of {len(some) - _MOST_CRITICAL} more kernels" if len(some) > _MOST_CRITICAL else ""
    text = f"estimated by the time per warp instruction: {'; '.join(named)}{more} (--predictions 0 predicts each)"
    return [text] if some else []


ASSUMED = "host code between calls takes no time here; concurrent kernels do not slow each other down"


def missing_text(run: ProgramRun) -> list[str]:
    """What the figures lack: it stands directly below the headline."""
    lines = [f"fault: launch {one.launch}: {plain(one.text, 400)}" for one in run.faults]
    if unknown := sum(one.unpredicted for one in run.kernels):
        reasons = {one.outcome.failed for one in run.launches if one.outcome.failed}
        lines.append(f"{unknown} launches have no predicted time and count as zero:")
        lines += [f"  {plain(reason, 300)}" for reason in sorted(reasons)[:_MOST_CRITICAL]]
    lines += [plain(finding, 400) for finding in run.findings]
    if run.unmodelled:
        calls = ", ".join(f"{plain(name, 80)} ({count})" for name, count in run.unmodelled)
        lines.append(f"not modelled: {calls}")
    return ["\n".join(lines)] if lines else []


def stream_name(key: tuple[int, int, int], processes: int, devices: int) -> str:
    """What a stream is called, given its process, device and handle."""
    process, device, handle = key
    name = f"stream {handle:#x}" if handle else "default stream"
    name = f"{name}, device {device}" if devices > 1 else name
    return f"{name}, process {process}" if processes > 1 else name
