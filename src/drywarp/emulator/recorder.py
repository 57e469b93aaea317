"""What a run leaves behind: every memory access, and the basic blocks that every warp issued.

Both are kept as arrays per executed step and put in the order of each warp once, at the end. Lane
offsets of accesses repeat endlessly, so each access stores the number of its pattern, found by a
hash of the offsets.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..kernel.profile import AccessLog, WarpPath
from .bits import FULL, LANES
from .frame import Frame
from .operands import Value

_HASH_SEED = 0x5EED
_rng = np.random.Generator(np.random.Philox(_HASH_SEED))
_WEIGHTS = _rng.integers(1, 1 << 63, LANES, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
_WEIGHT_SUM = _WEIGHTS.sum(dtype=np.uint64)
_MASK_WEIGHT = np.uint64(_rng.integers(1, 1 << 63)) * np.uint64(2) + np.uint64(1)
_ZERO = np.int64(0)


class Patterns:
    """Distinct patterns of lane offsets with the lanes that take part, numbered as they appear."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self.offsets: list[npt.NDArray[np.int64]] = []
        self.masks: list[int] = []

    def number(
        self, hashes: npt.NDArray[np.uint64], addresses: npt.NDArray[np.int64], base: npt.NDArray[np.int64],
        lanes: npt.NDArray[np.bool_] | None,
    ) -> npt.NDArray[np.int32]:  # fmt: skip
        """Pattern numbers of some accesses, shape (warps,); new patterns are kept."""
        unique, where, inverse = np.unique(hashes, return_index=True, return_inverse=True)
        numbers = np.empty(len(unique), np.int32)
        for position, (key, row) in enumerate(zip(unique.tolist(), where.tolist(), strict=True)):
            number = self._numbers.get(key)
            if number is None:
                number = self._numbers[key] = len(self.offsets)
                mask = np.ones(LANES, np.bool_) if lanes is None else lanes[row]
                self.offsets.append(np.where(mask, addresses[row] - base[row], _ZERO))
                self.masks.append(int(np.packbits(mask, bitorder="little").view(np.uint32)[0]))
            numbers[position] = number
        return numbers[inverse]


class Recorder:
    """Collects the record of one launch over all its waves."""

    def __init__(self) -> None:
        self.patterns = Patterns()
        self.first_warp = 0
        """Number of the wave's first warp among all sampled warps."""
        self._accesses: list[tuple[int, int, int, Any, Any, Any]] = []
        self._blocks: list[tuple[int, int, Any, Any]] = []
        self._latest: dict[tuple[int, int], tuple[npt.NDArray[np.uint64], npt.NDArray[np.int32]]] = {}

    def block(self, block: int, frame: Frame) -> None:
        """Note that the frame's warps issue a basic block."""
        warps, lanes = frame.record
        self._blocks.append((block, self.first_warp, warps, lanes))

    def access(self, frame: Frame, instruction: int, addresses: Value, space: int) -> None:
        """Note an access of the frame's executing lanes; `addresses` are bytes, shape (rows, 32).

        A copy from global to shared memory is two accesses; a matrix load is one of 16 bytes by the
        lanes that address its rows.
        """
        addresses = frame.spread(addresses)
        addresses = addresses.view(np.int64) if addresses.dtype.itemsize == 8 else addresses.astype(np.int64)
        lanes = frame.exec
        warps = frame.warps
        if lanes is None:
            base = addresses[:, 0]
            hashes = addresses.view(np.uint64) @ _WEIGHTS - base.view(np.uint64) * _WEIGHT_SUM
        else:
            words = frame.words()
            if not words.all():
                rows = np.flatnonzero(words)
                addresses, lanes, warps, words = addresses[rows], lanes[rows], warps[rows], words[rows]
            base = addresses[np.arange(len(words)), lanes.argmax(axis=1)]
            offsets = (addresses - base[:, None]) * lanes
            hashes = offsets.view(np.uint64) @ _WEIGHTS + (words ^ FULL).astype(np.uint64) * _MASK_WEIGHT
        latest = self._latest.get((instruction, space))
        if latest is not None and len(latest[0]) == len(hashes) and (latest[0] == hashes).all():
            numbers = latest[1]
        else:
            numbers = self.patterns.number(hashes, addresses, base, lanes)
            self._latest[instruction, space] = (hashes, numbers)
        self._accesses.append((instruction, space, self.first_warp, warps, base.copy(), numbers))

    def access_log(self) -> AccessLog:
        """All accesses, ordered by warp and, within a warp, as issued."""
        rows = self._accesses
        sizes = np.array([len(r[3]) for r in rows], np.int64)

        def joined(column: int, kind: Any) -> npt.NDArray[Any]:
            return np.concatenate([r[column] for r in rows]).astype(kind) if rows else np.zeros(0, kind)

        warp = joined(3, np.int32) + np.repeat(np.array([r[2] for r in rows], np.int32), sizes)
        order = np.argsort(warp, kind="stable")
        warp = warp[order]
        starts = np.searchsorted(warp, warp, side="left")
        return AccessLog(
            instruction=np.repeat(np.array([r[0] for r in rows], np.int32), sizes)[order],
            warp=warp,
            order=np.arange(len(warp), dtype=np.int64) - starts,
            base=joined(4, np.int64)[order],
            pattern=joined(5, np.int32)[order],
            space=np.repeat(np.array([r[1] for r in rows], np.int8), sizes)[order],
            offsets=np.array(self.patterns.offsets, np.int64).reshape(-1, LANES),
            masks=np.array(self.patterns.masks, np.uint32),
        )

    def paths(self, warps: int) -> tuple[tuple[WarpPath, ...], list[int]]:
        """Distinct paths, and the path number of each of `warps` warps."""
        blocks, warp, lanes = self._steps()
        order = np.argsort(warp, kind="stable")
        blocks, lanes = blocks[order], lanes[order]
        bounds = np.searchsorted(warp[order], np.arange(warps + 1))
        members: dict[bytes, list[int]] = {}
        for number in range(warps):
            members.setdefault(blocks[bounds[number] : bounds[number + 1]].tobytes(), []).append(number)
        paths, numbers = [], [0] * warps
        for path, of_path in enumerate(members.values()):
            total = np.zeros(bounds[of_path[0] + 1] - bounds[of_path[0]], np.float64)
            for number in of_path:
                total += lanes[bounds[number] : bounds[number + 1]]
                numbers[number] = path
            sequence = blocks[bounds[of_path[0]] : bounds[of_path[0] + 1]]
            paths.append(WarpPath(sequence.copy(), (total / len(of_path)).astype(np.float32)))
        return tuple(paths), numbers

    def lane_counts(self, warps: int, blocks: int) -> npt.NDArray[np.int64]:
        """Active lanes summed over the executions of each basic block, shape (warps, blocks)."""
        block, warp, lanes = self._steps()
        flat = np.bincount(warp.astype(np.int64) * blocks + block, lanes, minlength=warps * blocks)
        return flat.astype(np.int64).reshape(warps, blocks)

    def _steps(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
        """Basic block, warp and active lanes of every step of every warp, in the order of execution."""
        rows = self._blocks
        sizes = np.array([len(r[2]) for r in rows], np.int64)
        if not rows:
            return np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0, np.uint8)
        blocks = np.repeat(np.array([r[0] for r in rows], np.int32), sizes)
        warp = np.concatenate([r[2] for r in rows]) + np.repeat(np.array([r[1] for r in rows], np.int32), sizes)
        return blocks, warp, np.concatenate([r[3] for r in rows])
