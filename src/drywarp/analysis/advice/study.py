"""The full advice: findings without a budget, recompiled variants, all what-ifs, and the benefit chart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ...errors import DrywarpError
from ..prepare import prepare
from ..prepared import Prepared
from ..request import Options
from ..result.detail import LEAST_GAIN, Advice, Finding, WhatIfAnswer
from .builds import Build, block_sizes, other_gpus, register_caps, unrolling
from .case import Case, Setting
from .findings import benefit_chart, ranked, simulated, suspicions, what_ifs
from .resimulate import Outcome, baseline, budget_for, resimulate
from .whatif import WhatIf


@dataclass(frozen=True)
class Tried:
    """A what-if or a build and its outcome; `setting` is what was simulated."""

    answer: WhatIfAnswer
    what_if: WhatIf | None = None
    build: Build | None = None
    setting: Setting | None = None


class Study:
    """Runs every what-if and build for one kernel."""

    def __init__(self, prepared: Prepared, case: Case, options: Options) -> None:
        self.prepared, self.case, self.options = prepared, case, options
        self.budget = budget_for(case.setting)
        self.base = baseline(case.setting, case.prediction, self.budget, options.full_simulation)

    def advice(self) -> tuple[list[Finding], Advice]:
        """Findings, including those from builds, and all what-ifs."""
        say = self.options.on_stage
        say("simulating each fix")
        found = simulated(self.case, suspicions(self.case), self.budget, self.options.full_simulation)
        tried = [self.try_what_if(what_if) for what_if in what_ifs(self.case)]
        for build in builds(self.prepared, self.options.other_gpus):
            say(f"predicting {build.name}")
            tried.append(self.try_build(build))
        say("predicting the best two together")
        tried += self.best_two([one for one in tried if one is not None])
        answers = [one.answer for one in tried if one is not None]
        answers.sort(key=lambda answer: -(answer.gain or 0.0))
        return self.merged(found, tried), Advice(tuple(answers), benefit_chart(self.prepared))

    def simulate(self, setting: Setting) -> Outcome:
        """One simulation within the budget."""
        return resimulate(setting, self.budget, self.options.full_simulation)

    def try_what_if(self, what_if: WhatIf) -> Tried | None:
        """The outcome of a what-if; None if it changes nothing in this kernel."""
        setting = what_if.apply(self.case.setting)
        if setting is None:
            return None
        return Tried(self.answer(what_if.name, what_if.kind, setting), what_if, None, setting)

    def try_build(self, build: Build) -> Tried:
        """The outcome of a build, or the reason why it failed."""
        try:
            setting = self.made(build)
        except DrywarpError as error:
            return Tried(WhatIfAnswer(build.name, build.kind, None, None, None, str(error)), None, build)
        note = (
            f"{setting.workload.kernel.resources.registers} registers, {setting.conditions.blocks_per_sm} blocks per SM"
        )
        return Tried(self.answer(build.name, build.kind, setting, note), None, build, setting)

    def made(self, build: Build, **more: object) -> Setting:
        """The rebuilt kernel. Raises DrywarpError if that is impossible, or the result is not what was asked for."""
        if build.reason or self.prepared.request is None:
            raise DrywarpError(build.reason or "the kernel cannot be recompiled")
        # A build whose loops a limit cuts short elsewhere would not compare with this kernel.
        options = replace(self.options, fall_back=False)
        made = prepare(self.prepared.request.changed(**{**build.changes, **more}), options)
        if refused := build.refuse(made):
            raise DrywarpError(refused)
        return Setting.of(made, self.options.warm_l2)

    def answer(self, name: str, kind: str, setting: Setting, note: str = "") -> WhatIfAnswer:
        """The answer of one simulation."""
        outcome = self.simulate(setting)
        gain = self.base.time_s / outcome.time_s if outcome.time_s > 0 else float("inf")
        return WhatIfAnswer(name, kind, outcome.time_s, gain, outcome.limiter, note)

    def best_two(self, tried: Sequence[Tried]) -> list[Tried]:
        """The two most profitable changes of code or launch that can be combined, applied together."""
        made = [one for one in tried if one.answer.kind in ("code", "build", "launch")]
        paying = [one for one in made if (one.answer.gain or 0.0) >= LEAST_GAIN]
        paying.sort(key=lambda one: -(one.answer.gain or 0.0))
        if len(paying) < 2:
            return []
        first = paying[0]
        for second in paying[1:]:
            if first.build and second.build and set(first.build.changes) & set(second.build.changes):
                continue  # two values of the same argument
            try:
                setting = self.together(first, second)
            except DrywarpError:
                continue
            if setting is not None:
                name = f"{first.answer.name}, and {second.answer.name}"
                return [Tried(self.answer(name, "both", setting, "the best two together"))]
        return []

    def together(self, first: Tried, second: Tried) -> Setting | None:
        """Apply builds first, then what-ifs to their result."""
        made = [one.build for one in (first, second) if one.build]
        changes = {name: value for build in made for name, value in build.changes.items()}
        setting: Setting | None = self.made(made[0], **changes) if made else self.case.setting
        for one in (first, second):
            if one.what_if is not None and setting is not None:
                setting = one.what_if.apply(setting)
        return setting

    def merged(self, found: Sequence[Finding], tried: Sequence[Tried | None]) -> list[Finding]:
        """The findings; where a rule's remedy was compiled, its outcome replaces the estimate."""
        best: dict[str, Tried] = {}
        compiled: set[str] = set()
        for one in tried:
            if one is None or one.build is None or not one.build.rule or one.answer.gain is None:
                continue
            compiled.add(one.build.rule)
            if one.answer.gain > (best[one.build.rule].answer.gain or 0.0 if one.build.rule in best else 0.0):
                best[one.build.rule] = one
        kept = {finding.rule: finding for finding in found}
        for rule in compiled:
            before, one = kept.pop(rule, None), best[rule]
            assert one.build is not None
            evidence = before.evidence if before else f"{one.answer.name}: {one.answer.note}"
            kept[rule] = Finding(
                rule,
                one.answer.gain or 0.0,
                before.places if before else (),
                evidence,
                one.build.remedy,
                one.answer.name,
                one.answer.limiter or "latency",
            )
        return ranked(list(kept.values()))


def builds(prepared: Prepared, gpus: Sequence[str]) -> list[Build]:
    """Every variant that is recompiled or relaunched."""
    makers: list[Callable[[Prepared], list[Build]]] = [register_caps, block_sizes, unrolling]
    return [*(build for maker in makers for build in maker(prepared)), *other_gpus(prepared, gpus)]


def study(prepared: Prepared, case: Case, options: Options) -> tuple[list[Finding], Advice]:
    """The full advice for a kernel."""
    return Study(prepared, case, options).advice()
