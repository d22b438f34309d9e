"""Baselines: findings that are known already, recognised after edits elsewhere.

A finding is recognised by its file, its code and its accesses: the text of the source line, the instruction and the
object. Numbers of lines, registers and labels change with every edit, and are left out. So that a copy of a known
defect is new, each entry counts the places that look alike.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping

from mcheck.base.records import dataclass, replace
from mcheck.base.source_files import SourceText
from mcheck.findings.finding import Access, Finding

_NUMBERED = re.compile(r"(%[a-z]+)\d+\b|(\$L\w*?)\d[\d_]*\b")
_NUMBER = re.compile(r"\d+")
_GUARD = re.compile(r"^@!?\S+\s+")


@dataclass(frozen=True, slots=True)
class KnownAccess:
    """What is known of an access; ``source`` is the text of its line, without blanks at its ends."""

    instruction: str
    object: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownFinding:
    """The findings of a file that look alike, at so many different ``places``. ``message`` is that of a finding that
    has no accesses, without its numbers.
    """

    file: str
    code: str
    accesses: tuple[KnownAccess, ...] = ()
    message: str = ""
    places: int = 1

    @property
    def identity(self) -> KnownFinding:
        """The entry without its count."""
        return replace(self, places=1)


@dataclass(frozen=True, slots=True)
class Baseline:
    """The findings that are known."""

    entries: tuple[KnownFinding, ...] = ()

    def for_files(self, names: Mapping[str, str]) -> Baseline:
        """The entries of some files, with other names for these."""
        return Baseline(tuple(replace(e, file=names[e.file]) for e in self.entries if e.file in names))

    def knows(self, finding: Finding, file: str, texts: SourceText) -> bool:
        """Whether an entry looks like the finding, at however many places."""
        identity = identify_finding(finding, file, texts)
        return any(entry.identity == identity for entry in self.entries)

    def split(
        self, findings: Iterable[Finding], file: str, texts: SourceText
    ) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
        """The findings of a file that are new, and those that are known: of more places than were known, the first."""
        left = {entry.identity: entry.places for entry in self.entries}
        known_places: dict[KnownFinding, set[object]] = defaultdict(set)
        new, known = [], []
        for finding in findings:
            identity, place = identify_finding(finding, file, texts), _place(finding)
            places = known_places[identity]
            if place in places or len(places) < left.get(identity, 0):
                places.add(place)
                known.append(finding)
            else:
                new.append(finding)
        return tuple(new), tuple(known)


def compose_entries(findings: Iterable[Finding], file: str, texts: SourceText) -> tuple[KnownFinding, ...]:
    """The entries of all findings of a file."""
    places: dict[KnownFinding, set[object]] = defaultdict(set)
    for finding in findings:
        places[identify_finding(finding, file, texts)].add(_place(finding))
    return tuple(replace(identity, places=len(found)) for identity, found in places.items())


def missing_entries(before: Iterable[KnownFinding], after: Iterable[KnownFinding]) -> tuple[KnownFinding, ...]:
    """The entries that are no longer there."""
    found = {entry.identity for entry in after}
    return tuple(entry for entry in before if entry.identity not in found)


def identify_finding(finding: Finding, file: str, texts: SourceText) -> KnownFinding:
    """What a finding is recognised by; ``texts`` has the program at the path of its accesses, and its sources."""
    accesses = (_identify(access, texts) for access in finding.accesses)
    found = tuple(sorted(accesses, key=lambda a: (a.source, a.instruction, a.object)))
    message = "" if found else _NUMBER.sub("#", finding.message)
    return KnownFinding(file=file, code=finding.code, accesses=found, message=message)


def _identify(access: Access, texts: SourceText) -> KnownAccess:
    """A compiler chooses operands anew, so that of a compiled instruction only the operation counts."""
    text = _NUMBERED.sub(lambda found: found[1] or found[2], access.instruction)
    if access.source:
        text = _GUARD.sub("", text).partition(" ")[0].rstrip(";")
    return KnownAccess(text, access.object, _line(access, texts))


def _line(access: Access, texts: SourceText) -> str:
    spans = access.source or ((access.span,) if access.span is not None else ())
    lines = (texts.line(span) for span in spans)
    return " < ".join(line.strip() for line in lines if line)


def _place(finding: Finding) -> object:
    """The lines of the accesses."""
    spans = [(access.source or (access.span,))[0] for access in finding.accesses]
    return frozenset((span.path, span.line) for span in spans if span is not None)
