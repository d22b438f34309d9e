"""One place for the fix of several races: where one barrier, wait or fence stands between the accesses of all."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from mcheck.base.records import dataclass
from mcheck.findings.finding import Finding
from mcheck.findings.fix import BeforeIssue, HandOver, Insert, Meet

BARRIER = "barrier"
"""What a barrier does, or a release that is acquired."""


@dataclass(frozen=True, slots=True)
class Lack:
    """What races lack: instructions of these kinds, behind a statement of the gap, which is empty if no place does for
    all. A barrier before the issue of a copy is a kind of its own: what the copy overwrites is the other direction.
    """

    kinds: frozenset[str]
    gap: frozenset[int]

    def __and__(self, other: Lack) -> Lack:
        return Lack(self.kinds | other.kinds, self.gap & other.gap)

    def is_of(self, other: Lack) -> bool:
        """Whether one instruction does for both: at one place, of a kind that both lack."""
        alike = self.kinds <= other.kinds or other.kinds <= self.kinds
        return alike and not self.gap.isdisjoint(other.gap)

    @property
    def barrier(self) -> bool:
        """Whether barriers do."""
        return all(kind.startswith(BARRIER) for kind in self.kinds)


def lack_of(findings: Iterable[Finding]) -> Lack:
    """What these races lack together."""
    return reduce(Lack.__and__, map(_lack, findings))


def _lack(finding: Finding) -> Lack:
    kind = _kind(finding)
    return Lack(frozenset({kind}), frozenset(finding.gap if kind else ()))


def _kind(finding: Finding) -> str:
    """The kind of instruction that the fix begins with; empty if its place does not matter alone."""
    match finding.fixes[0].steps[0] if finding.fixes else None:
        case BeforeIssue():
            return f"{BARRIER} before an issue"
        case Meet() | HandOver():
            return BARRIER
        case Insert(codes=codes) if codes[0].startswith("bar."):
            return BARRIER
        case Insert() as step if step.waits:
            return " ".join(map(kind_of_wait, step.codes))
        case Insert(codes=codes) if codes[0].startswith("fence.proxy"):
            return codes[0]
    return ""


def kind_of_wait(code: str) -> str:
    """A wait without the number of groups that it leaves pending."""
    return code.partition(" ")[0].removesuffix("_all").removesuffix("_group")
