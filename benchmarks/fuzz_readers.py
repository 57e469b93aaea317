"""Damage real machine code and its listings, and see that every reader answers with one clear error, soon.

    python -m benchmarks.fuzz_readers --count 20000 --seed 1

The seeds are what drywarp's cache holds (`--examples` compiles the repository's examples first). Prints a table
by reader: how many damaged inputs, how many were read all the same, how many refused, the slowest, the most
memory; then every input that ended otherwise. Exit status 1 where there is one.
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

import msgspec
from tests.frontends.damage import code_of, container, damaged_bytes, damaged_text, host_elf

from drywarp.errors import DrywarpError
from drywarp.frontends import loaded as machine_code
from drywarp.frontends.binary.containers import architecture, load_binary_module
from drywarp.frontends.binary.cubin import kernels_of
from drywarp.frontends.binary.module import load_module
from drywarp.frontends.binary.sass import parse_listing
from drywarp.frontends.cache import Entry, cache_folder
from drywarp.frontends.cuda.host_code import hide_host_includes, pieces
from drywarp.frontends.cuda.instances import instances
from drywarp.frontends.cuda.nvrtc import Translation
from drywarp.frontends.cuda.source import find_kernels, includes
from drywarp.frontends.loaded import launch_comment
from drywarp.frontends.ptx import read_ptx, with_own_lines

ROOT = Path(__file__).parents[1]
SLOW_S = 5.0
"""A damaged input of the sizes here may take this long on a busy machine."""
HANGS_S = 30.0
"""After this long of wall time a reader is stopped."""
MOST_BYTES = 1 << 30
MOST_SEED = 400_000
"""Characters of a listing that is damaged whole; of longer ones the beginning is."""


@dataclass
class Count:
    """What became of the inputs of one reader."""

    inputs: int = 0
    read: int = 0
    refused: int = 0
    slowest: float = 0.0
    peak: int = 0
    bad: list[str] = field(default_factory=list)


def _stop(*_: object) -> None:
    raise TimeoutError(f"stopped after {HANGS_S:g} s")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2000, help="damaged inputs in all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=500.0, help="stop after this long")
    parser.add_argument("--examples", action="store_true", help="compile the examples first")
    parser.add_argument("--memory", action="store_true", help="trace memory too (several times slower)")
    parser.add_argument("--keep", type=Path, help="folder for the inputs that ended otherwise")
    arguments = parser.parse_args()
    if arguments.examples:
        for source in sorted((ROOT / "examples").glob("*.cu")):
            load_module(source, arch="sm_80")
    signal.signal(signal.SIGALRM, _stop)
    chance = random.Random(arguments.seed)
    entries = list(_entries(chance))
    if not entries:
        sys.exit("the cache is empty: run with --examples")
    counts = {name: Count() for name in _READERS}
    if arguments.memory:
        tracemalloc.start()
    end = time.monotonic() + arguments.seconds
    for number in range(arguments.count):
        if time.monotonic() > end:
            print(f"stopped after {number} inputs: {arguments.seconds:g} s are over")
            break
        name = list(_READERS)[number % len(_READERS)]
        _one(name, chance.choice(entries), chance, counts[name], arguments)
    print(f"{'reader':10} {'inputs':>8} {'read':>8} {'refused':>8} {'slowest':>9} {'memory':>10}")
    for name, count in counts.items():
        memory = f"{count.peak / 2**20:.0f} MiB" if arguments.memory else "–"
        print(f"{name:10} {count.inputs:8} {count.read:8} {count.refused:8} {count.slowest:7.2f} s {memory:>10}")
    bad = [f"{name}: {text}" for name, count in counts.items() for text in count.bad]
    for text, times in Counter(bad).most_common():
        print(f"{times} x {text}")
    return 1 if bad else 0


def _entries(chance: random.Random) -> Iterator[Entry]:
    paths = sorted((cache_folder() / "kernels").glob("*/*.msgpack"))
    for path in chance.sample(paths, min(len(paths), 150)):
        try:
            yield msgspec.msgpack.decode(path.read_bytes(), type=Entry)
        except (OSError, msgspec.MsgspecError):
            continue


def _one(name: str, entry: Entry, chance: random.Random, count: Count, arguments: argparse.Namespace) -> None:
    made, reader = _READERS[name]
    data = made(entry, chance)
    count.inputs += 1
    if arguments.memory:
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
    started = time.process_time()
    problem = ""
    signal.setitimer(signal.ITIMER_REAL, HANGS_S)
    try:
        reader(data, entry)
        count.read += 1
    except DrywarpError as error:
        count.refused += 1
        if "\n" in str(error) or not str(error):
            problem = f"message of several lines: {str(error)[:80]!r}"
    except Exception as error:
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        place = f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}" if trace else "?"
        problem = f"{type(error).__name__} at {place}: {str(error)[:80]}"
    signal.setitimer(signal.ITIMER_REAL, 0)
    took = time.process_time() - started
    count.slowest = max(count.slowest, took)
    if took > SLOW_S:
        problem = problem or f"took {took:.1f} s"
    if arguments.memory:
        used = tracemalloc.get_traced_memory()[1] - before
        count.peak = max(count.peak, used)
        if used > MOST_BYTES:
            problem = problem or f"took {used >> 20} MiB"
    if problem:
        count.bad.append(problem)
        if arguments.keep:
            arguments.keep.mkdir(parents=True, exist_ok=True)
            content = data if isinstance(data, bytes) else data.encode("utf-8", "surrogateescape")
            (arguments.keep / f"{name}_{len(count.bad)}").write_bytes(content)


def _arch(entry: Entry) -> str:
    return f"sm_{architecture(entry.cubin, 'seed')}"


def _read_cubin(data: bytes, entry: Entry) -> None:
    kernels_of(data, entry.listing[:MOST_SEED], _arch(entry), "f")


def _read_binary(data: bytes, entry: Entry) -> None:
    # nvdisasm is a process of its own, and slow: what it would print stands here.
    with (
        mock.patch.object(machine_code, "listing_of", return_value=entry.listing[:MOST_SEED]),
        mock.patch("drywarp.frontends.binary.containers.ptx_kernels", return_value={}),
    ):
        load_binary_module(Path("f"), data, arch=_arch(entry))


def _read_listing(text: str, entry: Entry) -> None:
    parse_listing(text, "f", code_of(entry.cubin))


def _read_ptx(text: str, entry: Entry) -> None:
    read_ptx(text)
    with_own_lines(text, "f")


def _read_source(text: str, entry: Entry) -> None:
    launch_comment(text, "f")
    find_kernels(text)
    includes(text)
    list(pieces(hide_host_includes(text)))
    instances(Translation(text, "f", None, ()))


_PTX = [path.read_text() for path in sorted((ROOT / "examples").glob("*.ptx"))]
_SOURCES = [path.read_text() for path in sorted((ROOT / "examples").glob("*.cu"))]
_READERS: dict[str, tuple[Callable[[Entry, random.Random], bytes | str], Callable[..., None]]] = {
    "cubin": (lambda e, c: damaged_bytes(e.cubin, c), _read_cubin),
    "binary": (lambda e, c: damaged_bytes(c.choice((container, host_elf))(e.cubin, c), c), _read_binary),
    "listing": (lambda e, c: damaged_text(e.listing[:MOST_SEED], c), _read_listing),
    "ptx": (lambda e, c: damaged_text(c.choice(_PTX), c), _read_ptx),
    "source": (lambda e, c: damaged_text(c.choice(_SOURCES), c), _read_source),
}


if __name__ == "__main__":
    sys.exit(main())
