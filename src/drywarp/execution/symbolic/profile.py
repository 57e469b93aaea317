"""`static_profile`: what a kernel does, from its code alone, in the same form as the emulator's record."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ...kernel.cfg import ControlFlowGraph, Loop
from ...kernel.instruction import RZ, Constant
from ...kernel.kernel import Kernel
from ...kernel.launch.launch import Launch
from ...kernel.profile import Profile, SampledBlock
from ..emulator.sampling import Blocks, Signature, explains, refine, sample_blocks, stratified
from ..emulator.skim import run_once
from ..emulator.tcgen05_form import FORMATS
from .affine import access_reports
from .decide import Decider, Guess, LoopCount
from .flow import Flow
from .hints import Hints, patterns_by_instruction, shares_by_instruction, trips_by_loop
from .instruction_sets import instruction_set
from .parameters import PATTERNS, StaticLaunch, allocations, assume, complete
from .report import Assumption, LoopReport, Record, StaticReport
from .state import ASSUMED, DATA, State
from .walk import Effort, Walk
from .words import Walked
from .written_out import access_log, lane_counts
from .written_out import paths as written_paths

_SHAPELESS = "products in tensor memory whose shapes are not known unless they run: the time excludes them"
_UNTRACKED = "copies whose tensor maps or sizes are not known unless the kernel runs: the time excludes them"
_SEVERAL = "some matrix instructions have several shapes: each is costed as its largest one"
_WAVE_WARPS = 512
"""Warps that are walked in parallel."""
_MIXED_SAMPLES = 24
"""Interior blocks that are sampled if blocks differ from neighbour to neighbour."""


@dataclass(frozen=True)
class StaticProfile:
    """A profile made without data, its launch, and the assumptions."""

    profile: Profile
    given: StaticLaunch
    report: StaticReport


def static_profile(
    kernel: Kernel,
    launch: Launch | StaticLaunch | None = None,
    trips: Mapping[str, int] | None = None,
    *,
    hints: Hints | None = None,
    blocks: Blocks = None,
    effort: Effort | None = None,
) -> StaticProfile:
    """Follow a kernel's code without running it: no buffers, no data.

    `launch` is a complete launch, one that `assume_launch` completed, or None to assume all of it. `trips` are trip
    counts by loop name (``L1``) or line; `hints` holds these and all other hints; `blocks` is as for the emulator.
    Every kernel gets an answer. Raises UsageError only for hints that do not fit the kernel.
    """
    hints = hints or Hints()
    if trips:
        hints = replace(hints, trips={**hints.trips, **trips})
    if launch is None:
        launch = assume_launch(kernel)
    given = complete(launch, kernel) if isinstance(launch, Launch) else launch
    walker = _Walker(kernel, given, hints, effort or Effort())
    launch = given.launch
    if blocks is not None:
        clusters = dict.fromkeys(launch.cluster_of(block) for block, _ in sample_blocks(launch.grid, blocks))
        return walker.answer(walker.follow([(one, math.prod(launch.clusters) / len(clusters)) for one in clusters]))
    grid = launch.clusters
    first = walker.follow(stratified(grid))

    def probe(linear: Sequence[int]) -> dict[int, Signature]:
        return _signatures(walker.follow([(number, 1.0) for number in linear]).profile)

    cuts = None if walker.exhausted else refine(grid, _signatures(first.profile), probe)
    if cuts is None or walker.exhausted:
        return walker.answer(first)
    if any(cuts):
        second = walker.follow(stratified(grid, cuts))
        if explains(cuts, grid, _signatures(second.profile)):
            return walker.answer(second)
    return walker.answer(walker.follow(stratified(grid, interior=_MIXED_SAMPLES)))


def _signatures(profile: Profile) -> dict[int, Signature]:
    """The behaviour of each cluster, by linear index: a digest of each warp's path."""
    digests = [hashlib.blake2b(path.blocks.tobytes(), digest_size=12).digest() for path in profile.paths]
    found: dict[int, Signature] = {}
    for block in profile.blocks:
        cluster = profile.launch.cluster_of(block.linear)
        found[cluster] = (*found.get(cluster, ()), *(digests[path] for path in block.paths))
    return found


def assume_launch(kernel: Kernel, **known: object) -> StaticLaunch:
    """A partly specified launch (see `parameters.assume`); the code determines the dimensions of the rest."""
    family = instruction_set(kernel)
    return assume(kernel, dimensions=family.dimensions(kernel), pointers=family.pointers(kernel), **known)  # type: ignore[arg-type]


def list_loops(kernel: Kernel) -> tuple[LoopReport, ...]:
    """The loops of a kernel, without their trip counts."""
    family = instruction_set(kernel)
    flow = Flow(kernel.instructions, family.graph(kernel), family.words(kernel))
    return _loop_reports(flow, {})


@dataclass(frozen=True)
class _Followed:
    """A sample that was followed: its profile, and what was found on the way."""

    profile: Profile
    counts: Mapping[int, LoopCount]
    guesses: frozenset[Guess]
    unsure: Mapping[int, int]


class _Walker:
    """Walks samples of one kernel."""

    def __init__(
        self,
        kernel: Kernel,
        given: StaticLaunch,
        hints: Hints,
        effort: Effort,
        cfg: ControlFlowGraph | None = None,
    ) -> None:
        self.kernel = kernel
        self.given = given
        self.effort = effort
        self.family = instruction_set(kernel)
        self.cfg: ControlFlowGraph = cfg or self.family.graph(kernel)
        self.flow = Flow(kernel.instructions, self.cfg, self.family.words(kernel))
        self.trips = trips_by_loop(hints, self.flow, kernel.name)
        self.shares = shares_by_instruction(hints, kernel.instructions)
        self.patterns = patterns_by_instruction(hints, kernel.instructions, PATTERNS)
        self.default, self.seen = hints.default_trips, hints.seen
        self.counts: dict[int, LoopCount] = {}
        self.guesses: set[Guess] = set()
        self.unsure: dict[int, int] = {}
        self.products: dict[int, tuple[str, ...]] = {}
        self.tensor_columns, self.several, self.untracked = 0, False, False
        self.exhausted = False
        """Whether a walk took too long, so that further ones are not worthwhile."""

    def follow(self, clusters: Sequence[tuple[int, float]]) -> _Followed:
        """Walk the blocks of these clusters (linear index and weight)."""
        launch, kernel = self.given.launch, self.kernel
        samples = sorted((block, weight) for cluster, weight in clusters for block in launch.members(cluster))
        per_block = launch.warps_per_block
        record = Record(launch.warp_size)
        self.counts, self.guesses, self.unsure = {}, set(), {}
        self.products, self.tensor_columns, self.several, self.untracked = {}, 0, False, False
        executed = np.zeros((len(samples), len(kernel.instructions)), np.int64)
        steps = 0
        notes: set[str] = set()
        if any(i.memory is not None and i.memory.space == "texture" for i in self.kernel.instructions):
            notes.add("textures and surfaces: the texels fetched are not tracked; memory figures exclude them")
        if any(i.class_ == "mbarrier" for i in self.kernel.instructions):
            notes.add("barriers in shared memory: assumed never to block")
        size = max(_WAVE_WARPS // per_block, 1)
        for start in range(0, len(samples), size):
            linear = [number for number, _ in samples[start : start + size]]
            record.first_warp = start * per_block
            walk = self._walk(linear, record, executed[start : start + size])
            steps += walk.warp_steps
            if walk.cut_short:
                self.exhausted = True
                notes.add("the walk took too long: loops were cut short from there on, so counts are too low")
        paths, numbers, share = written_paths(record, len(samples) * per_block)
        if share < 1:
            notes.add(f"loops have too many iterations to record: counts and time cover {share:.2%} of the steps")
        lanes = lane_counts(record, len(samples) * per_block, len(self.cfg.blocks))
        lanes = lanes.reshape(len(samples), per_block, -1).sum(axis=1)
        for block in self.cfg.blocks:
            for index in range(block.start, block.end):
                if kernel.instructions[index].guard is None:
                    executed[:, index] = lanes[:, block.index]
        log, logged = access_log(record, len(kernel.instructions), self.effort.accesses)
        sampled = tuple(
            SampledBlock(
                linear, launch.coordinates(linear), weight, tuple(numbers[n * per_block : (n + 1) * per_block])
            )
            for n, (linear, weight) in enumerate(samples)
        )
        shapeless = [n for n, i in enumerate(kernel.instructions) if i.opcode in FORMATS and n not in self.products]
        doubts = [_SHAPELESS] * bool(executed[:, shapeless].any()) + [_SEVERAL] * self.several
        profile = Profile(
            kernel=kernel.with_tensor_use(self.products, self.tensor_columns),
            launch=launch,
            cfg=self.cfg,
            blocks=sampled,
            paths=paths,
            accesses=log,
            thread_instructions=executed,
            allocations=allocations(kernel, self.given),
            steps=steps,
            notes=tuple(sorted(notes)),
            doubts=(*doubts, *[_UNTRACKED] * self.untracked),
            logged=logged,
            products=self.products,
        )
        return _Followed(profile, self.counts, frozenset(self.guesses), self.unsure)

    def _walk(self, linear: Sequence[int], record: Record, executed: npt.NDArray[np.int64]) -> Walk:
        launch = self.given.launch
        warps = len(linear) * launch.warps_per_block
        architecture = self.family.architecture(
            Walked(self.kernel, self.cfg, self.given, record, warps, self.patterns, self.shares)
        )
        state = State(launch, linear, architecture.files, architecture.convergence_barriers)
        architecture.start(state)
        decider = Decider(self.flow, warps, launch.warp_size, self.trips, self.default, self.shares, self.seen)
        walk = Walk(state, architecture, self.flow, decider, record, self.effort)
        walk.run()
        for index, count in decider.counts.items():
            self.counts.setdefault(index, LoopCount()).join(count)
        self.guesses |= decider.guesses
        self.several |= any(len(shapes) > 1 for shapes in architecture.products.values())
        self.untracked |= bool(architecture.untracked)
        self.products |= {number: max(shapes, key=_size) for number, shapes in architecture.products.items()}
        self.tensor_columns = max(self.tensor_columns, architecture.tensor_columns)
        for number, flags in architecture.unsure.items():
            self.unsure[number] = self.unsure.get(number, 0) | flags
        counts = architecture.counts.reshape(len(self.kernel.instructions), len(linear), -1).sum(axis=2).T
        executed[...] = counts
        return walk

    def answer(self, followed: _Followed) -> StaticProfile:
        """The profile with all assumptions made for it."""
        loops = _loop_reports(self.flow, followed.counts)
        accesses = access_reports(followed.profile, self.flow, loops, followed.unsure)
        report = StaticReport(loops, tuple(self._assumptions(loops, followed)), accesses)
        return StaticProfile(followed.profile, self.given, report)

    def _assumptions(self, loops: Sequence[LoopReport], followed: _Followed) -> list[Assumption]:
        # First what may change the time most: where lanes differ, each address takes a pass.
        found = list[Assumption]()
        executions = followed.profile.executions()
        for number, instruction in enumerate(self.kernel.instructions):
            index = next((o.register for o in instruction.operands if isinstance(o, Constant)), None)
            if index and index.index != RZ and executions[number]:
                lanes = "" if index.uniform else "the same for all lanes of a warp, "
                found.append(
                    self._at(number, "indices of constants", f"{lanes}so few different ones that the cache keeps them")
                )
        found += [Assumption(what, "", 0, value) for what, value in self.given.assumed]
        for loop in loops:
            if loop.known == "assumed":
                text = f"{loop.trips or 0:.4g} iterations" + (f", unrolled by {loop.copies}" if loop.copies > 1 else "")
                found.append(Assumption(f"loop {loop.name}", loop.file, loop.line, text))
        for guess in sorted(followed.guesses):
            found.append(self._at(guess.instruction, guess.what, guess.assumed))
        for number, flags in sorted(followed.unsure.items()):
            if number in self.patterns:
                continue
            if flags & DATA:
                text = "each element of memory holds its own index"
                found.append(self._at(number, "addresses that depend on data", text))
            elif flags & ASSUMED:
                found.append(self._at(number, "addresses", "those that the assumed arguments give"))
        return list(dict.fromkeys(found))

    def _at(self, instruction: int, what: str, assumed: str) -> Assumption:
        source = self.kernel.instructions[instruction].source
        return Assumption(what, source.file if source else "", source.line if source else 0, assumed)


class BriefWalk:
    """Follows blocks with the loops in `once` for one iteration, if it is clear how to leave them (see `Skim`).

    `steps` is how many warp instructions all calls together may follow, about.
    """

    def __init__(
        self, kernel: Kernel, given: StaticLaunch, cfg: ControlFlowGraph, once: Sequence[Loop], steps: int
    ) -> None:
        code, self.once = run_once(kernel.instructions, cfg, once)
        self._kernel, self._given, self._cfg = replace(kernel, instructions=tuple(code)), given, cfg
        self._left, self._each = float(steps), 0.0

    def __call__(self, blocks: Sequence[int]) -> Profile | None:
        """The behaviour of these blocks and of the others in their clusters; None if that takes too long."""
        launch = self._given.launch
        if self._each * len(blocks) > self._left:
            return None
        walker = _Walker(self._kernel, self._given, Hints(), Effort(), self._cfg)
        followed = walker.follow([(cluster, 1.0) for cluster in dict.fromkeys(map(launch.cluster_of, blocks))])
        self._each = followed.profile.steps / len(followed.profile.blocks)
        self._left -= followed.profile.steps
        return None if walker.exhausted else followed.profile


def _size(stated: tuple[str, ...]) -> int:
    """Multiply-adds of a product."""
    return math.prod(map(int, stated[0].split("x")))


def _loop_reports(flow: Flow, counts: Mapping[int, LoopCount]) -> tuple[LoopReport, ...]:
    found = []
    for loop in flow.loops:
        count = counts.get(loop.index, LoopCount())
        known = next((kind for kind in ("assumed", "given", "derived") if kind in count.kinds), "not reached")
        found.append(
            LoopReport(
                name=loop.name,
                file=loop.source.file if loop.source else "",
                line=loop.source.line if loop.source else 0,
                last_line=loop.last_line,
                parent="" if loop.parent is None else flow.loops[loop.parent].name,
                trips=count.iterations / count.runs if count.runs else None,
                fewest=count.fewest,
                most=count.most,
                known=known,
                copies=loop.copies,
            )
        )
    return tuple(found)
