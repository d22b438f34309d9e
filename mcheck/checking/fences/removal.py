"""Which synchronisation a proved program can do without, each alone and as much as possible together.

Fences are first removed in groups, and a group that the program needs is halved. If the program P without a group S of
fences is proved, so is P without any part of S. Suppose it had an execution with a finding: without the other fences of
S this is an execution of P without S. Fences access no memory, return no value and hold nobody up; those with operands
are left out. The axioms of the models from ptx-9.0 on, and what their findings leave out as ordered, have fences and
the order they give only where fewer of them allow more: the execution is consistent, with the finding in it. The answer
to a condition lies between that of P and that of P without S.

Arrivals at mbarriers are made relaxed in the same way. A relaxed arrival has the scope of the releasing one, counts in
the same phases, and is as strong. It is no release pattern by itself (8.8), but behind a release fence it is part of
one, as the releasing one is. So the patterns with more relaxed arrivals are some of those with fewer.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from itertools import chain
from typing import TypeVar

from mcheck.base.records import dataclass
from mcheck.base.verdicts import Verdict
from mcheck.checking.fences.candidates import (
    Candidate,
    Edit,
    Site,
    apply_edits,
    find_common_barriers,
    find_sites,
    find_weaker,
    saved_by,
)  # fmt: skip
from mcheck.checking.fences.costs import Costs
from mcheck.checking.fences.instructions import Instruction, unguarded
from mcheck.checking.run.result import Result

T = TypeVar("T")
Edits = tuple[Edit, ...]


@dataclass(frozen=True, slots=True)
class Trial:
    """What the check says of an edited program. ``codes`` are those of what it finds, beside what it finds in the
    program as it is. An edit that no assembler would take is an error.
    """

    verdict: Verdict
    codes: tuple[str, ...] = ()

    @property
    def is_proved(self) -> bool:
        """Whether the program is still proved, without a further finding."""
        return self.verdict is Verdict.PROVED and not self.codes


Check = Callable[[Sequence[str]], Sequence[Trial]]
"""The trials of edited programs, which do not depend on each other."""


@dataclass(frozen=True, slots=True)
class Tried:
    """A candidate with what the check says of the program so edited, or with further edits: ``proved_with``."""

    candidate: Candidate
    trial: Trial
    proved_with: Edits = ()

    @property
    def edit(self) -> Edit:
        """The first edit."""
        return self.candidate.edits[0]

    @property
    def codes(self) -> tuple[str, ...]:
        """The codes of what the check finds then."""
        return self.trial.codes


@dataclass(frozen=True, slots=True)
class Removals:
    """What a proved program can do without, alone; what it needs, with the findings that appear without it; what the
    check decides neither of; and edits that it can do without together. ``trials`` is the number of checks. ``cost`` is
    that of all instructions, each once, and ``saved`` what is less of it with the edits that are made together.
    """

    removable: tuple[Tried, ...]
    needed: tuple[Tried, ...]
    undecided: tuple[Tried, ...]
    together: Edits
    trials: int = 0
    cost: float = 0.0
    saved: float = 0.0


def find_removals(
    text: str, instructions: Sequence[Instruction], check: Check, costs: Costs, *, monotone: bool = False
) -> Removals:
    """What a program can do without that is proved as it is; ``monotone``: fences and arrivals may be edited in groups,
    since its model is one of those for which that is argued above, and it is proved without a finding.
    """
    search = _Search(text, check, costs, {})
    sites = find_sites(instructions, costs)
    shown: dict[int, Tried] = {}
    if monotone:
        shown |= search.edit_in_groups({site.start: site.fence for site in sites if site.fence})
        shown |= search.edit_in_groups({site.start: site.relaxed_arrival for site in sites if site.relaxed_arrival})
    left = [_try_site(site) for site in sites if site.start not in shown]
    tried = [*shown.values(), *chain.from_iterable(search.ask_all(left))]
    tried.sort(key=lambda each: each.edit.start)
    removed = {each.edit.start for each in tried if each.trial.is_proved and each.candidate.removes}
    common = [
        each for each in find_common_barriers(instructions, costs) if not any(e.start in removed for e in each.edits)
    ]
    tried += (each for each in search.ask_all([_try(candidate) for candidate in common]) if each.trial.is_proved)
    removable = tuple(each for each in tried if each.trial.is_proved)
    together = search.join([each.candidate for each in removable], sites)
    return Removals(
        removable,
        needed=tuple(each for each in tried if each.trial.verdict is Verdict.FINDING),
        undecided=tuple(each for each in tried if each.trial.verdict in (Verdict.BOUNDED, Verdict.UNKNOWN)),
        together=together,
        trials=len(search.known),
        cost=sum(costs.of(unguarded(each.text)) for each in instructions),
        saved=sum(saved_by(edit, costs) for edit in together),
    )


def is_proved(result: Result) -> bool:
    """Whether the check proves the program without a finding that a comment or an option leaves out."""
    return result.verdict == Verdict.PROVED and not (result.findings or result.suppressed or result.deselected)


def _halves(group: tuple[T, ...]) -> tuple[tuple[T, ...], tuple[T, ...]]:
    """Two halves of a group, none of a single one."""
    middle = len(group) // 2
    return (group[:middle], group[middle:]) if middle else ((), ())


Questions = Generator[Edits, Trial, T]
"""Asks for the trials of edits, one after the other, each of which may depend on those before."""


def _try(candidate: Candidate) -> Questions[Tried]:
    return Tried(candidate, (yield candidate.edits))


def _try_site(site: Site) -> Questions[list[Tried]]:
    """The removal of a synchronisation, and if it is needed, the weakest of each of its weaker forms. Of what nothing
    can be removed, as of an order or a scope, the first form that is not allowed.
    """
    last: Tried | None = None
    for removal in site.removals:
        last = yield from _try(removal)
        if last.trial.is_proved:
            return [last]
    told: dict[Edits, Tried] = {}
    for forms in site.chains:
        weakest, refused = yield from _descend(forms, ())
        form = refused if weakest is None and not site.removals else weakest
        if form is not None:
            told.setdefault(form.candidate.edits, form)
    return [*([last] if last is not None else []), *told.values()]


def _descend(forms: Sequence[Candidate], kept: Edits) -> Questions[tuple[Tried | None, Tried | None]]:
    """The last of some forms, each weaker than the one before, that the program allows beside the edits that are kept;
    and the first that it does not allow. What no assembler would take is passed over.
    """
    weakest: Tried | None = None
    for form in forms:
        trial = yield (*kept, *form.edits)
        if trial.is_proved:
            weakest = Tried(form, trial)
        elif trial.verdict is not Verdict.ERROR:
            return weakest, Tried(form, trial)
    return weakest, None


@dataclass(frozen=True, slots=True)
class _Search:
    text: str
    check: Check
    costs: Costs
    known: dict[Edits, Trial]

    def ask_all(self, asking: Sequence[Questions[T]]) -> list[T]:
        """The results of all; what they ask for at one time is checked at one time."""
        results: dict[int, T] = {}
        wanted = {number: next(each) for number, each in enumerate(asking)}
        while wanted:
            trials = self.trials(list(wanted.values()))
            answered, wanted = dict(zip(wanted, trials, strict=True)), {}
            for number, trial in answered.items():
                try:
                    wanted[number] = asking[number].send(trial)
                except StopIteration as end:
                    results[number] = end.value
        return [results[number] for number in range(len(asking))]

    def trials(self, wanted: Sequence[Edits]) -> list[Trial]:
        """What the check says of the program with each of these edits; each program is checked once."""
        keys = [tuple(sorted(edits, key=lambda edit: edit.start)) for edits in wanted]
        new = [key for key in dict.fromkeys(keys) if key not in self.known]
        if new:
            self.known.update(zip(new, self.check([apply_edits(self.text, key) for key in new]), strict=True))
        return [self.known[key] for key in keys]

    def allows(self, edits: Edits) -> bool:
        """Whether the program is proved with these edits."""
        return self.trials([edits])[0].is_proved

    def edit_in_groups(self, candidates: Mapping[int, Candidate]) -> dict[int, Tried]:
        """By their places, the candidates with which the program is proved, alone or with others of a group."""
        found: dict[int, Tried] = {}
        groups = [tuple(candidates.items())] if len(candidates) > 1 else []
        while groups:
            edits = [tuple(chain.from_iterable(each.edits for _, each in group)) for group in groups]
            trials = self.trials(edits)
            for group, together, trial in zip(groups, edits, trials, strict=True):
                if trial.is_proved:
                    beside = together if len(group) > 1 else ()
                    found |= {start: Tried(each, trial, beside) for start, each in group}
            failed = [group for group, trial in zip(groups, trials, strict=True) if not trial.is_proved]
            groups = [half for group in failed for half in _halves(group) if half]
        return found

    def join(self, candidates: Sequence[Candidate], sites: Sequence[Site]) -> Edits:
        """Edits that the program allows together, to which no removal and no weaker form can be added: what saves most
        by the table of costs is added first. Each set that is kept was checked as a whole.
        """
        ordered = sorted(candidates, key=lambda each: (-each.saves, not each.removes, each.edits[0].start))
        kept = self.grow((), ordered)
        may_go = {edit.start for each in candidates if each.removes for edit in each.edits}
        for site in sites:
            if site.start in may_go and not any(edit.start == site.start for edit in kept):
                for forms in site.chains:
                    ((weakest, _),) = self.ask_all([_descend(forms, kept)])
                    if weakest is not None:
                        kept = (*kept, *weakest.candidate.edits)
                        break
            kept = self.weaken_further(kept, site)
        return tuple(sorted(kept, key=lambda edit: edit.start))

    def weaken_further(self, kept: Edits, site: Site) -> Edits:
        """The edits, with a weaker form of what a synchronisation becomes: one that is weaker in its order may have a
        narrower scope as well.
        """
        places = {each.start for each in site.copies}
        mine = sorted((edit for edit in kept if edit.start in places), key=lambda edit: edit.start)
        texts = [edit.replacement for edit in mine if edit.replacement is not None]
        if len(texts) < len(places):
            return kept
        others = tuple(edit for edit in kept if edit.start not in places)
        for forms in find_weaker(site.copies, texts, self.costs):
            ((weakest, _),) = self.ask_all([_descend(forms, others)])
            if weakest is not None:
                return self.weaken_further((*others, *weakest.candidate.edits), site)
        return kept

    def grow(self, kept: Edits, more: Sequence[Candidate]) -> Edits:
        """The edits with as many of the candidates as the program allows: all of them, or what each half adds."""
        fitting: list[Candidate] = []
        added: Edits = ()
        for each in more:
            if not each.touches((*kept, *added)):
                fitting.append(each)
                added += each.edits
        if not fitting or self.allows((*kept, *added)):
            return (*kept, *added)
        if len(more) == 1:
            return kept
        half = len(more) // 2
        return self.grow(self.grow(kept, more[:half]), more[half:])
