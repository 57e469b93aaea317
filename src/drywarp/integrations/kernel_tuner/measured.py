"""The space of a tuning that is over: from Kernel Tuner's cache, or its results in the T4 format."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...errors import UsageError
from ...validation.read import read_header, read_table
from .predictions import key_text
from .space import TuningSpace, tuning_space


def measured_space(
    file: str | Path,
    kernel_source: Any,
    arguments: Sequence[Any],
    *,
    kernel_name: str | None = None,
    problem_size: Any = None,
    **options: Any,
) -> TuningSpace:
    """The configurations that a cache or T4 file holds times of, as a space.

    A cache says the kernel's name and the problem size, a T4 file does not; where they are given they are taken.
    `options` are further arguments of `tune_kernel`, such as `grid_div_x`. Raises InputFileError for another file.
    """
    path = Path(file)
    table, header = read_table(path), read_header(path)
    name = kernel_name or header.get("kernel_name")
    size = problem_size if problem_size is not None else header.get("problem_size")
    if not name:
        raise UsageError(f"{path}: does not say the kernel's name (expected kernel_name=)")
    if size is None or (isinstance(size, str) and not size.strip().isdecimal()):
        raise UsageError(f"{path}: does not say the problem size (expected problem_size=)")
    rows = [row.values() for row in table.rows]
    names = table.parameters
    params = {name: list(dict.fromkeys(row[name] for row in rows if name in row)) for name in names}
    held = {tuple(key_text(row.get(name, "")) for name in names) for row in rows}
    wanted = options.pop("restrictions", None)
    among = (lambda *values: tuple(map(key_text, values)) in held, list(names))
    more = wanted if isinstance(wanted, list) else [] if wanted is None else [wanted]
    return tuning_space(name, kernel_source, size, arguments, params, restrictions=[*more, among], **options)
