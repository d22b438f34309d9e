"""Which edits leave a program proved, each alone and as many as possible together."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mcheck.base.records import dataclass
from mcheck.base.verdicts import Verdict
from mcheck.checking.fences.candidates import Edit, apply_edits, find_edits
from mcheck.checking.run.result import Result

Check = Callable[[str], Result]


@dataclass(frozen=True, slots=True)
class Tried:
    """An edit with the result of checking the program so changed."""

    edit: Edit
    result: Result

    @property
    def codes(self) -> tuple[str, ...]:
        """The codes of what the check finds then."""
        return tuple(sorted({str(finding.code) for finding in self.result.findings}))


@dataclass(frozen=True, slots=True)
class Removals:
    """The edits that a proved program allows alone, those after which there is a finding, those of which the check
    decides neither, and a set that the program allows together.
    """

    removable: tuple[Tried, ...]
    needed: tuple[Tried, ...]
    undecided: tuple[Tried, ...]
    together: tuple[Edit, ...]


def find_removals(text: str, check: Check) -> Removals:
    """What a program can do without that is proved as it is."""
    tried = tuple(Tried(edit, check(apply_edits(text, (edit,)))) for edit in find_edits(text))
    removable = tuple(each for each in tried if is_proved(each.result))
    needed = tuple(each for each in tried if each.result.verdict == Verdict.FINDING)
    open_ones = (Verdict.BOUNDED, Verdict.UNKNOWN)  # an edit that no assembler would take is none
    undecided = tuple(each for each in tried if each.result.verdict in open_ones)
    return Removals(removable, needed, undecided, _join([each.edit for each in removable], text, check))


def is_proved(result: Result) -> bool:
    """Whether the check proves the program without a finding that a comment or an option leaves out."""
    return result.verdict == Verdict.PROVED and not (result.findings or result.suppressed or result.deselected)


def _join(edits: Sequence[Edit], text: str, check: Check) -> tuple[Edit, ...]:
    """A set of these edits that leaves the program proved; removals come before weakenings."""
    kept: tuple[Edit, ...] = ()
    for edit in sorted(edits, key=lambda edit: edit.replacement is not None):
        more = (*kept, edit)
        if all(edit.start != other.start for other in kept) and is_proved(check(apply_edits(text, more))):
            kept = more
    return tuple(sorted(kept, key=lambda edit: edit.start))
