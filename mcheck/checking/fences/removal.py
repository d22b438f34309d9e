"""Which synchronisation a proved program can do without, each alone and as much as possible together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from mcheck.base.records import dataclass
from mcheck.base.verdicts import Verdict
from mcheck.checking.fences.candidates import Candidate, Edit, Site, apply_edits, find_common_barriers, find_sites
from mcheck.checking.fences.instructions import Instruction
from mcheck.checking.run.result import Result


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


Check = Callable[[str], Trial]


@dataclass(frozen=True, slots=True)
class Tried:
    """A candidate with what the check says of the program so edited."""

    candidate: Candidate
    trial: Trial

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
    check decides neither of; and edits that it can do without together. ``trials`` is the number of checks.
    """

    removable: tuple[Tried, ...]
    needed: tuple[Tried, ...]
    undecided: tuple[Tried, ...]
    together: tuple[Edit, ...]
    trials: int = 0


def find_removals(text: str, instructions: Sequence[Instruction], check: Check) -> Removals:
    """What a program can do without that is proved as it is."""
    search = _Search(text, check, {})
    sites = find_sites(instructions)
    tried = [each for site in sites for each in search.try_site(site)]
    removed = {each.edit.start for each in tried if each.trial.is_proved and each.candidate.removes}
    for common in find_common_barriers(instructions):
        if not any(edit.start in removed for edit in common.edits):
            trial = search.trial(common.edits)
            tried += [Tried(common, trial)] if trial.is_proved else []
    removable = tuple(each for each in tried if each.trial.is_proved)
    together = search.join([each.candidate for each in removable], sites)
    return Removals(
        removable,
        needed=tuple(each for each in tried if each.trial.verdict is Verdict.FINDING),
        undecided=tuple(each for each in tried if each.trial.verdict in (Verdict.BOUNDED, Verdict.UNKNOWN)),
        together=together,
        trials=len(search.known),
    )


def is_proved(result: Result) -> bool:
    """Whether the check proves the program without a finding that a comment or an option leaves out."""
    return result.verdict == Verdict.PROVED and not (result.findings or result.suppressed or result.deselected)


@dataclass(frozen=True, slots=True)
class _Search:
    text: str
    check: Check
    known: dict[tuple[Edit, ...], Trial]

    def trial(self, edits: Iterable[Edit]) -> Trial:
        """What the check says of the program with these edits; each program is checked once."""
        key = tuple(sorted(edits, key=lambda edit: edit.start))
        if key not in self.known:
            self.known[key] = self.check(apply_edits(self.text, key))
        return self.known[key]

    def allows(self, edits: Iterable[Edit]) -> bool:
        """Whether the program is proved with these edits."""
        return self.trial(edits).is_proved

    def try_site(self, site: Site) -> Iterator[Tried]:
        """The removal of a synchronisation, and if it is needed, the weakest of each of its weaker forms. Of what
        nothing can be removed, as of an order or a scope, the first form that is not allowed.
        """
        last: Tried | None = None
        for removal in site.removals:
            last = Tried(removal, self.trial(removal.edits))
            if last.trial.is_proved:
                yield last
                return
        if last is not None:
            yield last
        told: dict[tuple[Edit, ...], Tried] = {}
        for chain in site.chains:
            form = self.weakest(chain, ())
            if form is None and not site.removals:
                form = next((each for each in chain if self.trial(each.edits).verdict is not Verdict.ERROR), None)
            if form is not None:
                told.setdefault(form.edits, Tried(form, self.trial(form.edits)))
        yield from told.values()

    def weakest(self, chain: Sequence[Candidate], kept: tuple[Edit, ...]) -> Candidate | None:
        """The last form of a chain before the first that the program does not allow beside the edits that are kept."""
        found: Candidate | None = None
        for form in chain:
            trial = self.trial((*kept, *form.edits))
            if trial.is_proved:
                found = form
            elif trial.verdict is not Verdict.ERROR:
                break
        return found

    def join(self, candidates: Sequence[Candidate], sites: Sequence[Site]) -> tuple[Edit, ...]:
        """Edits that the program allows together, to which no removal and no weaker form can be added: what saves most
        is added first. Each set that is kept was checked as a whole.
        """
        ordered = sorted(candidates, key=lambda each: (not each.removes, -each.saves, each.edits[0].start))
        kept = self.grow((), [each for each in ordered if each.removes])
        kept = self.grow(kept, [each for each in ordered if not each.removes])
        may_go = {edit.start for each in candidates if each.removes for edit in each.edits}
        for site in sites:
            if site.start in may_go and not any(edit.start == site.start for edit in kept):
                for chain in site.chains:
                    weakest = self.weakest(chain, kept)
                    if weakest is not None:
                        kept = (*kept, *weakest.edits)
                        break
        return tuple(sorted(kept, key=lambda edit: edit.start))

    def grow(self, kept: tuple[Edit, ...], more: Sequence[Candidate]) -> tuple[Edit, ...]:
        """The edits with as many of the candidates as the program allows: all of them, or what each half adds."""
        fitting: list[Candidate] = []
        added: tuple[Edit, ...] = ()
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
