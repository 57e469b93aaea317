"""Coalesced or not, and how many transactions: Algorithms 1 and 2 of Hong and Kim, on address patterns.

Hong and Kim, "An analytical model for a GPU architecture with memory-level and thread-level
parallelism awareness" (ISCA 2009), appendix. The paper applies them to an index expression in the
source; here they take the indices that the threads of a warp really use, so that any kernel whose
addresses are known can be asked. Units: indices count elements of `size` bytes from an aligned
array. Algorithm 1 is for compute capabilities below 1.3, Algorithm 2 from 1.3 on.

Assumed, as the paper does: all 32 threads access, in the order of their thread indices, and the step
between neighbours is the same all along. A step that varies, where the paper has no derivative to
take, is uncoalesced in Algorithm 1; in Algorithm 2 its mean magnitude counts, and a warp that reads
one element, with step 0, takes one transaction where the print gives none. Left out: lanes that are
off, and a cap on Algorithm 2, which for large steps counts more transactions than there are threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil

HALF_WARP = 16
COALESCING_SIZES = (4, 8, 16)
TRANSACTION_BYTES = {1: 32, 2: 64, 4: 128, 8: 128, 16: 128}
"""Result_size of Algorithm 2 by the size of an element, in bytes."""


def is_coalesced(indices: Sequence[int], size: int) -> bool:
    """Algorithm 1: an element of 4, 8 or 16 bytes, steps of one, half-warps that start at a multiple of 16."""
    starts = indices[::HALF_WARP]
    steps = (after - before for before, after in pairwise(indices))
    return size in COALESCING_SIZES and all(step == 1 for step in steps) and all(s % HALF_WARP == 0 for s in starts)


def transactions_before_1_3(indices: Sequence[int], size: int, coal_per_mw: int = 1) -> int:
    """Transactions of one access: #Coal_per_mw if Algorithm 1 finds it coalesced, else one a thread (§3.4.5)."""
    return coal_per_mw if is_coalesced(indices, size) else len(indices)


def transactions_from_1_3(indices: Sequence[int], size: int) -> tuple[int, int]:
    """Algorithm 2: how many transactions, N, and of how many bytes each.

    The extent in step 4 is that of 16 threads; the paper uses N as the transactions of the access.
    """
    if size not in TRANSACTION_BYTES:
        raise ValueError(f"element size of {size} bytes: expected one of {sorted(TRANSACTION_BYTES)}")
    result_size = TRANSACTION_BYTES[size]
    count = int(any(start % HALF_WARP for start in indices[::HALF_WARP]))
    result_increment = _step(indices[:HALF_WARP])
    extent = ceil(result_increment * HALF_WARP * size / result_size)
    return max(1, count + extent), result_size


def _step(indices: Sequence[int]) -> float:
    """The mean of |d/d(tx) Index|: its value where the step does not vary."""
    steps = [abs(after - before) for before, after in pairwise(indices)]
    return sum(steps) / len(steps) if steps else 0.0


@dataclass(frozen=True, slots=True)
class AccessTerm:
    """A memory instruction in Algorithms 1 and 2, as means over its accesses.

    `instruction` is its index in the kernel, `line` its source line (0: unknown), `size` the bytes of an element.
    `coalesced` is the share of accesses that Algorithm 1 finds coalesced, `before_1_3` and `from_1_3` are the
    transactions of compute capabilities below and from 1.3, and `transaction_bytes` is Algorithm 2's size of one.
    Accesses with some lanes off are left out, as the algorithms take 32 threads.
    """

    instruction: int
    line: int
    size: int
    coalesced: float
    before_1_3: float
    from_1_3: float
    transaction_bytes: int


def coalescing(
    instruction: int, line: int, size: int, accesses: Sequence[tuple[Sequence[int], int]]
) -> AccessTerm | None:
    """Algorithms 1 and 2 on a memory instruction's accesses: the 32 threads' indices, and how often.

    None without accesses, or for a size that Algorithm 2 does not know.
    """
    times = sum(count for _, count in accesses)
    if not times or size not in TRANSACTION_BYTES:
        return None
    sums = [0.0, 0.0, 0.0]
    for indices, count in accesses:
        sums[0] += count * is_coalesced(indices, size)
        sums[1] += count * transactions_before_1_3(indices, size)
        sums[2] += count * transactions_from_1_3(indices, size)[0]
    coalesced, before, since = (each / times for each in sums)
    return AccessTerm(instruction, line, size, coalesced, before, since, TRANSACTION_BYTES[size])
