"""The candidates: edits that remove a synchronisation of a program, alone or with what it goes with, or weaken it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from itertools import chain

from mcheck.base.errors import Span
from mcheck.base.records import dataclass, replace
from mcheck.checking.fences.costs import Costs
from mcheck.checking.fences.edits import Change, apply_changes
from mcheck.checking.fences.instructions import Instruction, unguarded
from mcheck.checking.fences.weakenings import GROUPS, weaker_forms

_REMOVABLE = (
    ("fence",), ("membar",), ("bar", "sync"), ("bar", "cta", "sync"), ("bar", "warp", "sync"), ("barrier", "sync"),
    ("barrier", "cta", "sync"), ("barrier", "cluster", "wait"), *GROUPS, ("cp", "async", "wait_all"),
    ("wgmma", "fence"), ("tcgen05", "fence::before_thread_sync"), ("tcgen05", "fence::after_thread_sync"),
    ("tcgen05", "wait::ld"), ("tcgen05", "wait::st"),
)  # fmt: skip
"""Not griddepcontrol.wait: what it waits for is another launch, of which a program may have nothing."""
_ARRIVAL = ("barrier", "cluster", "arrive")
_WAIT = ("barrier", "cluster", "wait")


@dataclass(frozen=True, slots=True)
class Edit:
    """Replacement of the statement at ``start`` to ``end`` of the text, or its removal; ``line`` is 1-based."""

    line: int
    start: int
    end: int
    instruction: str
    replacement: str | None
    source: tuple[Span, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class Candidate:
    """Edits that are made together, with the cycles that they save."""

    edits: tuple[Edit, ...]
    saves: float = 0.0

    @property
    def removes(self) -> bool:
        """Whether its instructions go; otherwise they become weaker."""
        return self.edits[0].replacement is None

    def touches(self, others: Iterable[Edit]) -> bool:
        """Whether it edits a statement that one of these edits."""
        mine = {edit.start for edit in self.edits}
        return any(edit.start in mine for edit in others)


@dataclass(frozen=True, slots=True)
class Site:
    """A synchronisation as its author wrote it: one instruction, or the copies that a compiler made of one.

    ``removals`` are tried in their order until one leaves the program proved.
    """

    copies: tuple[Instruction, ...]
    removals: tuple[Candidate, ...]
    chains: tuple[tuple[Candidate, ...], ...]
    """Weakenings, each stronger than the next one of its chain."""

    @property
    def start(self) -> int:
        """The offset of its first instruction."""
        return self.copies[0].start

    @property
    def fence(self) -> Candidate | None:
        """Its removal, if it is a fence without operands."""
        are_fences = all(each.opcode[0] in ("fence", "membar") and not each.operands for each in self.copies)
        return self.removals[-1] if are_fences else None

    @property
    def relaxed_arrival(self) -> Candidate | None:
        """Its relaxed form, if it is an arrival at an mbarrier that can be weaker in no other way."""
        are_arrivals = all(each.opcode[:2] == ("mbarrier", "arrive") for each in self.copies)
        return self.chains[0][0] if are_arrivals and [len(chain) for chain in self.chains] == [1] else None


def apply_edits(text: str, edits: Sequence[Edit]) -> str:
    """The text with these edits, of different statements; lines keep their numbers."""

    def change(edit: Edit) -> Change:
        lines = "\n" * text.count("\n", edit.start, edit.end)
        return Change(edit.start, edit.end, lines if edit.replacement is None else edit.replacement)

    return apply_changes(text, map(change, edits))


def find_sites(instructions: Sequence[Instruction], costs: Costs) -> tuple[Site, ...]:
    """The synchronisations among the instructions of a program, in the order of the text."""
    beside = _partners(instructions)
    return tuple(site for copies in _copies(instructions) if (site := _site(copies, beside, costs)) is not None)


def find_common_barriers(instructions: Sequence[Instruction], costs: Costs) -> tuple[Candidate, ...]:
    """Barriers of which several statements are a part, each with all of them: one alone may be needed by the others."""
    beside = _partners(instructions)
    named: defaultdict[object, defaultdict[str, list[tuple[Instruction, ...]]]] = defaultdict(lambda: defaultdict(list))
    for each in instructions:
        if each.opcode[:3] == _WAIT and each.start in beside:
            named[_WAIT][each.owner].append((beside[each.start], each))
        elif _is_cta_barrier(each):
            named[each.operands.partition(",")[0].strip()][each.owner].append((each,))
    found: list[Candidate] = []
    for owners in named.values():
        rounds = [*owners.values()]
        if len(rounds) > 1 and len({len(of_owner) for of_owner in rounds}) == 1:
            found += (_removal([*chain.from_iterable(group)], costs) for group in zip(*rounds, strict=True))
        elif sum(map(len, rounds)) > 1:
            found.append(_removal([*chain.from_iterable(chain.from_iterable(rounds))], costs))
    return tuple(found)


def _is_cta_barrier(instruction: Instruction) -> bool:
    parts = {*instruction.opcode}
    return instruction.opcode[0] in ("bar", "barrier") and bool(
        parts & {"sync", "arrive"} and not parts & {"cluster", "warp"}
    )


def _copies(instructions: Sequence[Instruction]) -> Iterator[tuple[Instruction, ...]]:
    """The instructions, with those of one opcode that were compiled from one place of the source together."""
    found: dict[object, list[Instruction]] = {}
    for each in instructions:
        place = (each.owner, each.opcode, each.source) if each.source else each.start
        found.setdefault(place, []).append(each)
    yield from map(tuple, found.values())


def _partners(instructions: Sequence[Instruction]) -> dict[int, Instruction]:
    """By the start of a wait: the arrival or the end of a group before it in its role, which goes with it."""
    found: dict[int, Instruction] = {}
    last: dict[object, Instruction] = {}
    for each in instructions:
        opcode = each.opcode
        if opcode[:3] == _ARRIVAL:
            last[each.owner, _WAIT] = each
        elif "commit_group" in opcode:
            last[each.owner, opcode[: opcode.index("commit_group")]] = each
        elif opcode[:3] == _WAIT or "wait_group" in opcode:
            kind = _WAIT if opcode[:3] == _WAIT else opcode[: opcode.index("wait_group")]
            if (other := last.pop((each.owner, kind), None)) is not None:
                found[each.start] = other
    return found


def _site(copies: tuple[Instruction, ...], beside: dict[int, Instruction], costs: Costs) -> Site | None:
    first = copies[0]
    removals: list[Candidate] = []
    if first.awaits or any(first.opcode[: len(head)] == head for head in _REMOVABLE):
        partners = [beside[each.start] for each in copies if each.start in beside]
        if len(partners) == len(copies):
            removals.append(_removal((*copies, *partners), costs))
        removals.append(_removal(copies, costs))
    chains = find_weaker(copies, [each.text for each in copies], costs)
    return Site(copies, tuple(removals), chains) if removals or chains else None


def find_weaker(copies: Sequence[Instruction], texts: Sequence[str], costs: Costs) -> tuple[tuple[Candidate, ...], ...]:
    """Weakenings of instructions that have these texts now, each stronger than the next one of its chain."""
    now = [replace(each, text=text) for each, text in zip(copies, texts, strict=True)]
    return tuple(
        tuple(_candidate(copies, forms, costs) for forms in zip(*alike, strict=True))
        for alike in zip(*map(weaker_forms, now), strict=False)
        if len({len(forms) for forms in alike}) == 1
    )


def _removal(copies: Sequence[Instruction], costs: Costs) -> Candidate:
    return _candidate(copies, [None] * len(copies), costs)


def _candidate(copies: Sequence[Instruction], forms: Sequence[str | None], costs: Costs) -> Candidate:
    edits = tuple(_edit(each, form) for each, form in zip(copies, forms, strict=True))
    return Candidate(edits, sum(saved_by(edit, costs) for edit in edits))


def saved_by(edit: Edit, costs: Costs) -> float:
    """The cycles that an edit saves each time."""
    left = 0 if edit.replacement is None else costs.of(unguarded(edit.replacement))
    return costs.of(unguarded(edit.instruction)) - left


def _edit(instruction: Instruction, replacement: str | None) -> Edit:
    return Edit(
        instruction.line, instruction.start, instruction.end, instruction.text, replacement, instruction.source
    )  # fmt: skip
