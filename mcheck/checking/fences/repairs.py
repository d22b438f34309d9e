"""The smallest sets of edits after which a program with findings is proved: each is checked."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator

from mcheck.base.records import dataclass, replace
from mcheck.base.verdicts import Verdict
from mcheck.checking.fences.computation import LESS
from mcheck.checking.fences.costs import Costs
from mcheck.checking.fences.edits import Edit, apply_changes
from mcheck.checking.fences.finding_facts import identify
from mcheck.checking.fences.outline import outline
from mcheck.checking.fences.repair_candidates import SIZES, find_candidates
from mcheck.checking.fences.repair_leftovers import find_leftovers
from mcheck.checking.run.result import Result

Check = Callable[[str], Result | None]
"""The result of checking a text; none if no time is left."""
Describe = Callable[[str], tuple[str, ...] | None]
"""What a text computes otherwise than the program; none if that is unknown."""
MOST_EDITS = 3
ALTERNATIVES = 4
CHEAPER = 48
MORE = 24
"""As many trials look for cheaper repairs, and as many for those of other kinds, once there is one."""
LEFTOVERS = 12
"""As many removals are tried of what a repair makes superfluous."""
BEAMS = (12, 4)
"""How many programs with one edit, and with two, are edited further."""
WIDER = 3
"""From so many times as many they are chosen."""
SHARES = (0.45, 0.4, 0.05)
"""The parts of the trials for repairs by one edit, by two and by three; the rest is for other sizes."""
OUT_OF_TIME = "the time is over"


@dataclass(frozen=True, slots=True)
class Step:
    """An edit of the program that the edits before it leave."""

    edit: Edit
    text: str


@dataclass(frozen=True, slots=True)
class Repair:
    """Edits after which the program is proved, in order, and the text that they leave.

    ``reviews``: the codes of findings for review that leave a program proved, if it has some then. ``changes``: what
    the program computes otherwise than before.
    """

    steps: tuple[Step, ...]
    text: str
    verdict: Verdict
    reviews: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()

    @property
    def is_plain(self) -> bool:
        """Whether nothing is left to be looked at."""
        return not self.reviews and not self.changes

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The edits, each of the text before it."""
        return tuple(step.edit for step in self.steps)

    @property
    def cost(self) -> float:
        """What the repair adds to the costs of the program."""
        return sum(edit.cost for edit in self.edits)

    @property
    def kind(self) -> tuple[str, ...]:
        """What kinds of edits these are."""
        return tuple(sorted(edit.kind for edit in self.edits))


def repair_of(steps: tuple[Step, ...], text: str, result: Result) -> Repair | None:
    """The repair by these edits, if the check of the text says that it is one."""
    if result.verdict is not Verdict.PROVED or result.suppressed or result.deselected:
        return None
    return Repair(steps, text, result.verdict, tuple(sorted({str(finding.code) for finding in result.findings})))


@dataclass(frozen=True, slots=True)
class Repairs:
    """The repairs, those without any finding and the cheapest first; one that changes what is computed only if no other
    is known.

    ``trials``: as many programs were checked; ``limit``: why not more were.
    """

    found: tuple[Repair, ...]
    trials: int
    limit: str | None = None


@dataclass(frozen=True, slots=True)
class _State:
    """A program with findings after some edits; ``left``: how many findings of the program before are still there."""

    steps: tuple[Step, ...]
    text: str
    result: Result
    left: int


@dataclass(frozen=True, slots=True)
class _Candidate:
    """An edit of a program that may mend it."""

    state: _State
    edit: Edit


def find_repairs(
    first: Result, text: str, check: Check, explain: Check, describe: Describe, costs: Costs, trials: int
) -> Repairs:
    """The repairs with the fewest edits of a program whose check has findings.

    ``check`` may stop at the first finding, ``explain`` lists all of them, with their fixes; ``describe`` says what a
    text computes otherwise.
    """
    program = outline(text)
    original = {identify(finding, program) for finding in first.findings} if program is not None else set()
    search = _Search(check, describe, costs, trials, original)
    begin = _State((), text, first, 0)
    states = [begin]
    for edits in range(MOST_EDITS):
        states = search.expand(states, SHARES[edits])
        if search.is_done or search.limit is not None or not states:
            break
        states = search.choose(states, BEAMS[edits], explain) if edits < len(BEAMS) else []
    if not search.repairs and search.limit is None:
        search.expand([begin], 1 - sum(SHARES), sizes=True)
    limit = search.limit or (f"--trials {trials} left others out" if search.left_out else None)
    found = sorted(map(search.without_leftovers, search.cheapest()), key=_preference)
    return Repairs(tuple(found), search.used, limit)


def _preference(repair: Repair) -> tuple[bool, bool, float]:
    return LESS in repair.changes, bool(repair.reviews), repair.cost


def _promise(state: _State) -> tuple[int, int, int]:
    return state.left, sum(step.edit.rank for step in state.steps), len(state.result.findings)


def _contains(repair: Repair, other: Repair) -> bool:
    """Whether a repair is of the kind of another one, or inserts all that this one does and more."""
    ours, theirs = ([line for edit in each.edits for line in edit.inserted] for each in (repair, other))
    return repair.kind == other.kind or (bool(theirs) and set(theirs) <= set(ours))


class _Search:
    """The trials of one program."""

    def __init__(
        self, check: Check, describe: Describe, costs: Costs, trials: int, original: set[tuple[str, ...]]
    ) -> None:
        self.original = original
        self.check = check
        self.describe = describe
        self.costs = costs
        self.trials = trials
        self.used = 0
        self.limit: str | None = None
        self.left_out = False
        self.first = False
        self.more = {True: CHEAPER, False: MORE}
        self.seen: set[str] = set()
        self.repairs: list[Repair] = []

    def expand(self, states: list[_State], share: float, *, sizes: bool = False) -> list[_State]:
        """Tries one more edit on each state; the states with other findings than before. ``sizes``: only such edits."""
        out: list[_State] = []
        most = self.used + int(self.trials * share)
        queue = deque(each for each in self._candidates(states) if not sizes or each.edit.kind in SIZES)
        while queue and self.used < most:
            candidate = queue.popleft()
            changed = apply_changes(candidate.state.text, candidate.edit.changes)
            steps = (*candidate.state.steps, Step(candidate.edit, candidate.state.text))
            if changed in self.seen or not self._is_worth(steps) or not self._may_go_on(candidate):
                continue
            result = self._try(changed)
            if result is None:
                break
            if (repair := repair_of(steps, changed, result)) is not None:
                self.repairs.append(replace(repair, changes=self._changes(repair)))
                if not self.first and self.repairs[-1].is_plain:
                    self.first = True
                    queue = deque(sorted(queue, key=lambda each: not self._is_cheaper(each)))
            elif not self.first and result.verdict == Verdict.FINDING:
                left = _count_left(candidate.state, changed, result)
                out += [] if left is None else [_State(steps, changed, result, left)]
        self.left_out = self.left_out or bool(queue)
        return out

    def _try(self, changed: str) -> Result | None:
        """The check of a text; none if no time is left."""
        self.seen.add(changed)
        result = self.check(changed)
        if result is None:
            self.limit = OUT_OF_TIME
        else:
            self.used += 1
        return result

    def _may_go_on(self, candidate: _Candidate) -> bool:
        """Whether there is no repair yet, or trials are left for such a candidate."""
        if not self.first:
            return True
        cheaper = self._is_cheaper(candidate)
        self.more[cheaper] -= 1
        return self.more[cheaper] >= 0

    def choose(self, states: list[_State], most: int, explain: Check) -> list[_State]:
        """The states that are edited further, with all of their findings: first those that compute what the program
        does. They are chosen from the most promising of each kind.
        """
        seen: Counter[tuple[str, ...]] = Counter()
        ranked: list[tuple[int, _State]] = []
        for state in sorted(states, key=_promise):
            kind = tuple(step.edit.kind for step in state.steps)
            seen[kind] += 1
            ranked.append((seen[kind], state))
        ranked.sort(key=lambda each: (each[1].left, each[0], _promise(each[1])))
        promising = [self._explained(state, explain) for _, state in ranked[: WIDER * most]]
        return sorted(promising, key=lambda each: (bool(self.describe(each.text)), _promise(each)))[:most]

    def _explained(self, state: _State, explain: Check) -> _State:
        """The state with all of its findings."""
        result, program = explain(state.text), outline(state.text)
        if result is None or program is None:
            return state
        left = len(self.original & {identify(finding, program) for finding in result.findings})
        return replace(state, result=result, left=left)

    @property
    def is_done(self) -> bool:
        """Whether there is a repair that leaves what is computed."""
        return any(not repair.changes for repair in self.repairs)

    def _changes(self, repair: Repair) -> tuple[str, ...]:
        """What a repair changes of what is computed; where that is unknown, the kinds of its edits decide."""
        found = self.describe(repair.text)
        if found is None:
            return tuple(f"another {kind} may compute something else" for kind in repair.kind if kind in SIZES)
        return found

    def cheapest(self) -> Iterator[Repair]:
        """The cheapest repair of each kind."""
        chosen: list[Repair] = []
        usable = [repair for repair in self.repairs if not repair.changes] or self.repairs
        for repair in sorted(usable, key=_preference):
            if len(chosen) < ALTERNATIVES and not any(_contains(repair, other) for other in chosen):
                chosen.append(repair)
                yield repair

    def without_leftovers(self, repair: Repair) -> Repair:
        """The repair without what it makes superfluous: with less of it the program is proved and computes the same."""
        for _ in range(LEFTOVERS):
            for edit in find_leftovers(repair.edits, repair.text, self.costs):
                changed = apply_changes(repair.text, edit.changes)
                if changed not in self.seen and self.used < self.trials and (result := self._try(changed)) is not None:
                    fewer = repair_of((*repair.steps, Step(edit, repair.text)), changed, result)
                    if fewer is not None and fewer.reviews == repair.reviews and self._changes(fewer) == repair.changes:
                        repair = replace(fewer, changes=repair.changes)
                        break
            else:
                break
        return repair

    def _candidates(self, states: list[_State]) -> deque[_Candidate]:
        """The edits of all states: those of the first states and of the first ranks before others."""
        found = []
        for place, state in enumerate(states):
            program = outline(state.text)
            if program is not None:
                edits = find_candidates(program, state.result.findings, self.costs)
                found += [(4 * place + edit.rank, _Candidate(state, edit)) for edit in edits]
        return deque(candidate for _, candidate in sorted(found, key=lambda each: each[0]))

    def _is_cheaper(self, candidate: _Candidate) -> bool:
        """Whether a candidate costs less than each repair that is known."""
        cost = sum(step.edit.cost for step in candidate.state.steps) + candidate.edit.cost
        return all(cost < repair.cost for repair in self.repairs if repair.is_plain)

    def _is_worth(self, steps: tuple[Step, ...]) -> bool:
        """Whether a repair by these steps would be cheaper than those that are known, or of another kind."""
        cost = sum(step.edit.cost for step in steps)
        kind = tuple(sorted(step.edit.kind for step in steps))
        cheapest = min((repair.cost for repair in self.repairs if repair.is_plain), default=None)
        if cheapest is None or cost < cheapest:
            return True
        return (
            not SIZES & set(kind)
            and kind not in {repair.kind for repair in self.repairs}
            and sum(not repair.changes for repair in self.repairs) < ALTERNATIVES
        )


def _count_left(state: _State, changed: str, result: Result) -> int | None:
    """How many of the findings are still there; none if all are, and nothing else."""
    one, other = outline(state.text), outline(changed)
    if one is None or other is None:
        return None
    before = {identify(finding, one) for finding in state.result.findings}
    after = {identify(finding, other) for finding in result.findings}
    return None if before == after else len(before & after)
