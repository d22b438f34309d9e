"""A finding as text and as JSON.

The text has at most ``MOST_LINES`` lines: a sentence, the source lines of its places with labels, the fix, how many
findings it stands for, the rule. The schedule and the instructions are for those who ask.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mcheck.base.errors import Span
from mcheck.base.phrase import Aside, Code, OnlyIf, Part, Phrase, Site, Sites, Thing, plain
from mcheck.base.records import dataclass, replace
from mcheck.base.source_files import SourceText
from mcheck.findings import catalogue
from mcheck.findings.finding import Access, CompiledLine, Finding
from mcheck.findings.fix import IdleWait
from mcheck.findings.fix_words import tell as tell_fix
from mcheck.findings.groups import group_findings
from mcheck.findings.repair import whole_insertions
from mcheck.report.deadlocks import barrier_states
from mcheck.report.errors import window
from mcheck.report.evidence import find_evidence
from mcheck.report.excerpts import Mark, excerpt
from mcheck.report.fix_places import places_to_write
from mcheck.report.language_words import Vocabulary, language_of, library_of
from mcheck.report.lines import Line
from mcheck.report.program_words import words_of_finding
from mcheck.report.sentences import label, operation, sentence, thing_name, value_use
from mcheck.report.source_text import Depth, depth_of, places_shown, primary_place
from mcheck.report.trace import abridge_registers, format_trace

MOST = 200
"""The maximum number of characters shown of a source line."""
MOST_LINES = 12
"""The maximum number of lines of a finding, unless more is asked for."""
MOST_MARKS = 3
"""The maximum number of places shown of a finding."""
TIMES = ("", "", ", twice", ", three times")
"""How often there is an access that is shown once."""
MOST_SENTENCE = 240
"""The maximum number of characters of the sentence about a race, unless its first clause is longer."""
MOST_FIX = 240
"""The maximum number of characters of a fix, unless its first sentence is longer."""
SEVERITY_STYLES = {"error": "bold red", "review": "yellow", "advice": "cyan"}


def to_json(finding: Finding) -> dict[str, Any]:
    """The JSON object of a finding."""
    return {
        "code": finding.code,
        "kind": finding.kind,
        "severity": finding.severity,
        "message": finding.message,
        "accesses": [_access(access) for access in finding.accesses],
        "missing": finding.missing,
        **_edits(finding),
        "spec": {"document": finding.spec.document, "section": finding.spec.section},
        "trace": list(format_trace(finding.trace)),
    }


def _edits(finding: Finding) -> dict[str, Any]:
    """The instructions to insert, if the fix is nothing else."""
    found = [
        {
            "insert": "".join(f"{code};" for code in step.codes),
            "line": point.site.line,
            "column": point.site.column,
            "after": point.after,
        }
        for step in whole_insertions(finding.fixes)
        for point in step.points
    ]
    return {"edits": found} if found else {}


def _access(access: Access) -> dict[str, Any]:
    found: dict[str, Any] = {
        "thread": access.thread,
        "path": access.path,
        "line": access.line,
        "column": access.column,
        "instruction": access.instruction,
        "object": access.object,
        "bytes": list(access.bytes),
        "proxy": access.proxy,
        "access": access.access,
    }
    if access.value:
        found["value"] = access.value
    if access.source:
        found["source"] = [{"path": s.path, "line": s.line, "column": s.column} for s in access.source]
    return found


def groups_to_json(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """The bugs behind findings, causes first: the findings of each by their indices, the one to show first, and the
    source places of that one; ``follows`` is the index of the group of which it may be a consequence.
    """
    return [
        {
            "code": group.code,
            "count": len(group.members),
            "findings": list(group.members),
            "source": [
                {"path": span.path, "line": span.line, "column": span.column}
                for access in findings[group.members[0]].accesses
                if (span := access.source[0] if access.source else access.span) is not None
            ],
            **({"follows": group.follows} if group.follows is not None else {}),
        }
        for group in group_findings(findings)
    ]


def compiled_from(access: Access) -> str:
    """The source location of a compiled access, ``kernel.cu:11:7, inlined in kernel.cu:40:3``; empty without line
    information.
    """
    return ", inlined in ".join(f"{s.path}:{s.line}:{s.column}" for s in access.source)


@dataclass(frozen=True, slots=True)
class Bug:
    """The finding to show for a bug: ``stands_for`` says for how many places, threads and stages; ``consequences`` are
    places of findings that may follow from it; ``count`` is the number of findings.
    """

    finding: Finding
    stands_for: str = ""
    consequences: tuple[str, ...] = ()
    count: int = 1


def lines(
    finding: Finding | Bug,
    source: str = "",
    *,
    verbose: bool = False,
    trace: bool = False,
    most: int | None = None,
    width: int | None = None,
    texts: SourceText | None = None,
) -> Iterator[Line]:
    """The lines of a finding.

    ``source`` is the text of the program, whose lines are quoted; ``width`` the width of the terminal, if there is one.
    ``trace`` adds the schedule, ``verbose`` also the message of the engine and the instructions, ``most`` of them.
    """
    bug = finding if isinstance(finding, Bug) else Bug(finding)
    found = bug.finding
    texts = texts or SourceText(source, next((a.path for a in found.accesses if a.path), None))
    style = SEVERITY_STYLES.get(found.severity, "")
    told = tell(bug, texts)
    yield (f"{found.severity}[{found.code}]", style), ": ", (told.sentence, "bold")
    yield from excerpt(told.marks, texts, style, width, told.origin)
    for word, text in told.notes:
        yield "  = ", (f"{word}:", "cyan"), f" {text}"
    if verbose:
        yield from _details(found, source, style, most, width)
    if (trace or verbose) and found.trace:
        yield ("  trace:",)
        for step in format_trace(found.trace):
            yield (f"    {step}",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What is said of a bug: a sentence, the places with their labels, and notes with their titles (``fix``, ``rule``).

    ``origin``: where the primary place was compiled from, if it is a place in the module.
    """

    sentence: str
    primary: Span | None
    marks: tuple[Mark, ...]
    notes: tuple[tuple[str, str], ...]
    origin: str = ""


def tell(bug: Bug, texts: SourceText) -> Told:
    """What is said of a bug in at most ``MOST_LINES`` lines."""
    found = bug.finding
    told = _Lines(found, texts, places_shown(found, texts))
    notes = tuple(_notes(bug, told))
    marks = told.marks(MOST_LINES - 1 - len(notes))
    if len(marks) < len(told.marks()) and bug.consequences and bug.stands_for:
        notes = tuple(_notes(bug, told, in_one=True))
        marks = told.marks(MOST_LINES - 1 - len(notes))
    say = words_of_finding(found, texts)
    return Told(
        sentence=say(told.sentence()),
        primary=told.primary,
        marks=tuple(replace(mark, label=say(mark.label)) for mark in marks),
        notes=tuple((word, say(text)) for word, text in notes),
        origin=told.origin,
    )


def title(finding: Finding, texts: SourceText) -> tuple[Span | None, str]:
    """The place and the sentence of a finding, for a report of one line."""
    shown = places_shown(finding, texts)
    told = _Lines(finding, texts, shown)
    return told.primary, words_of_finding(finding, texts)(told.sentence())


def _notes(bug: Bug, told: _Lines, *, in_one: bool = False) -> Iterator[tuple[str, str]]:
    """What stands below the places, with its title; ``in_one``: what it stands for and what follows in one line."""
    found = bug.finding
    if states := barrier_states(found):
        yield "state", states
    fix = told.fix()
    if fix:
        yield "fix", fix
    effects = f"{', '.join(bug.consequences)} may follow from this" if bug.consequences else ""
    if effects and not in_one:
        yield "also", effects
    if use := value_use(found):
        yield "note", use
    for condition in found.conditions:
        yield "note", f"only if {told.render(condition.clause)}"
    if evidence := find_evidence(found):
        yield "seen", evidence
    if bug.stands_for:
        yield "places", f"{bug.stands_for}{f'; {effects}' if in_one else ''}: --all shows each"
    if found.section:
        lowered = catalogue.get(found.code).permissive if found.severity == "error" else None
        profile = f"; {lowered} under --profile permissive" if lowered else ""
        yield "rule", f"{found.spec.document}, {found.spec.section}{profile}; mcheck explain {found.code}"


_REGISTER = re.compile(r"%\w+")


class _Lines:
    """The lines that a finding mentions, in terms of the places that are shown."""

    def __init__(self, finding: Finding, texts: SourceText, shown: Sequence[Span | None]) -> None:
        self._finding = finding
        self._texts = texts
        self._shown = shown
        self._depth = depth_of([access.source for access in finding.accesses], texts)
        own = {_chain(access.source): span for access, span in zip(finding.accesses, shown, strict=True)}
        self._known = dict(_places_of(finding.lines, self._depth, texts, own))
        self._written = places_to_write(finding, texts)
        self._path = next((access.path for access in finding.accesses if access.path), None)
        self._compiled = any(access.source for access in finding.accesses)
        self.primary = primary_place(finding, shown)

    @property
    def origin(self) -> str:
        """Where the primary place was compiled from, if it is a place in the module."""
        accesses = zip(self._finding.accesses, self._shown, strict=True)
        access = next((a for a, span in accesses if span is self.primary and span is a.span), None)
        return f" (from {compiled_from(access)})" if access is not None and access.source else ""

    def marks(self, room: int | None = None) -> list[Mark]:
        """The places with their labels, as many as fit into so many lines: each place takes two, each file one."""
        found = self._finding
        most = min(MOST_MARKS, len(found.waits) or MOST_MARKS)  # waits that no other thread waits for come last
        said = [(span, self._label(k, span)) for k, span in enumerate(self._shown[:most]) if span is not None]
        marks = [
            Mark(span, text + TIMES[said.count((span, text))], primary=span == self.primary)
            for span, text in dict.fromkeys(said)
        ]
        if len(marks) < MOST_MARKS and (more := self._wait()):
            marks.append(more)
        while room is not None and len(marks) > 1 and 2 * len(marks) + len({mark.span.path for mark in marks}) > room:
            marks.pop()
        return marks

    def _label(self, k: int, span: Span) -> str:
        """What is said at a place, with the line of the call that it is inside of."""
        return label(self._finding, k) + self._call_of(self._finding.accesses[k].source, span)

    def _call_of(self, chain: Sequence[Span], span: Span) -> str:
        """The line of the call that a place is inside of, as the end of its label."""
        called = self._depth.call(chain, self._texts)
        within = called is not None and (called.path, called.line) != (span.path, span.line)
        return f", called at line {called.line}" if called and within else ""

    def _wait(self) -> Mark | None:
        """The wait that does not suffice, with what it does."""
        notes = (note for fix in self._finding.fixes for note in fix.notes)
        wait = next((note for note in notes if isinstance(note, IdleWait)), None)
        if wait is None:
            return None
        place = self._place(wait.at.line)
        taken = {(span.path, span.line) for span in self._shown if span is not None}
        if place is None or (place.path, place.line) in taken:
            return None
        chain = next((one.source for one in self._finding.lines if one.line == wait.at.line), ())
        return Mark(place, self.render(wait.does) + self._call_of(chain, place))

    def _place(self, line: int) -> Span | None:
        if line in self._known:
            return self._known[line]
        return Span(self._path, line, 1) if self._path is not None and not self._compiled else None

    def _name_several(self, lines: Sequence[int], between: str = ", ", *, fix: bool = False) -> str:
        """Lines of a module by those of its source, each once: an unrolled loop has many of one. ``fix``: those of a
        fix, where it is written.
        """
        *most, last = dict.fromkeys(self._name(line, fix=fix) for line in lines)
        return f"lines {', '.join(most)}{between}{last}" if most else self._name(lines[0], word="line ", fix=fix)

    def _name(self, line: int, word: str = "", *, fix: bool = False) -> str:
        place = self._written.get(line, self._known.get(line)) if fix else self._known.get(line)
        if place is None:
            in_source = any(span is not None and span.path != self._path for span in self._shown)
            return f"{word}{line} of the PTX" if in_source else f"{word}{line}"
        here = self.primary is not None and place.path == self.primary.path
        return f"{word}{place.line}" if here else f"{self._texts.name(place.path)}:{place.line}"

    def _access_at(self, site: Site) -> str:
        """Which access of its source line a place is, if both are on that: ``the read of``."""
        ends = self._finding.accesses
        same = len({(span.path, span.line) for span in self._shown if span is not None}) == 1
        does = [operation(access).partition(" ")[2] or access.access for access in ends]
        if len(ends) != 2 or not same or does[0] == does[1] or site.line in self._written:
            return ""
        found = [what for access, what in zip(ends, does, strict=True) if access.line == site.line]
        return f"the {found[0]} of " if len(found) == 1 else ""

    def sentence(self) -> str:
        """What is wrong, each clause once: copies of one line of the source differ in their registers alone."""
        kept: dict[str, str] = {}
        for clause in self.render(sentence(self._finding)).split("; "):
            kept.setdefault(_REGISTER.sub("%", clause.rpartition(": ")[2]), clause)
        clauses = list(kept.values())
        while self._finding.kind == "race" and len(clauses) > 1 and len("; ".join(clauses)) > MOST_SENTENCE:
            clauses.pop()
        return "; ".join(clauses)

    def fix(self) -> str:
        """The fixes without details of the execution, in the words of the language as well."""
        language = language_of(self._finding, self._texts)
        words = Vocabulary(language, library_of(self._finding), one_cta=not self._finding.between_ctas)
        said = (each for fix in self._finding.fixes for each in tell_fix(fix))
        kept: list[str] = []
        size = 0
        for phrase, detail in said:
            size += len(self.render(phrase, fix=True))
            if detail or (kept and size > MOST_FIX):
                break
            kept.append(self.render(phrase, words, fix=True))
        return " ".join(dict.fromkeys(kept)).rstrip(".").removeprefix("Execute ")

    def render(self, phrase: Phrase, words: Vocabulary | None = None, *, fix: bool = False) -> str:
        """The phrase, perhaps of a ``fix``, in terms of the source and, with ``words``, of its language."""
        before = ("", *phrase[:-1])
        return "".join(self._part(part, words, behind, fix=fix) for behind, part in zip(before, phrase, strict=True))

    def _part(self, part: Part, words: Vocabulary | None, behind: Part, *, fix: bool) -> str:
        match part:
            case Site() if self._compiled:
                told = isinstance(behind, str) and behind.endswith("at ")
                return ("" if told or not fix else self._access_at(part)) + self._name_several([part.line], fix=fix)
            case Sites() if self._compiled:
                return self._name_several([site.line for site in part.sites], part.last, fix=fix)
            case Thing():
                return thing_name(part)
            case Code() if words is not None:
                return words.name(part.text)
            case Aside() | OnlyIf():
                return ""
            case str() if words is not None:
                return words.annotate(part)
        return plain((part,))


def _places_of(
    compiled: Sequence[CompiledLine],
    depth: Depth,
    texts: SourceText,
    shown: Mapping[tuple[tuple[str, int], ...], Span | None],
) -> Iterator[tuple[int, Span | None]]:
    """The places of lines of a module: of an access where it is ``shown``; of several other lines that one call
    contains, those inside of it if its file has them.
    """
    calls: dict[tuple[str, int] | None, list[CompiledLine]] = {}
    for one in compiled:
        place = depth.call(one.source, texts)
        calls.setdefault(None if place is None else (place.path, place.line), []).append(one)
    for call, within in calls.items():
        own = [one.source[: len(one.source) - depth.shared] for one in within]
        inside = [depth_of(own, texts).place(chain, texts) for chain in own]
        if call is None or any(place is None or place.path != call[0] for place in inside):
            inside = [Depth().place(chain, texts) for chain in own]
        yield from ((one.line, shown.get(_chain(one.source), place)) for one, place in zip(within, inside, strict=True))


def _chain(source: Sequence[Span]) -> tuple[tuple[str, int], ...]:
    return tuple((span.path, span.line) for span in source)


def _details(finding: Finding, source: str, style: str, most: int | None, width: int | None) -> Iterator[Line]:
    """The message and fix of the engine, and the instructions."""
    yield (f"  {finding.kind}: {finding.message}",)
    shown = finding.accesses[:most]
    for access in shown:
        yield from _place(access, source, style, width)
    if len(shown) < len(finding.accesses):
        yield (f"  and {len(finding.accesses) - len(shown)} more",)
    if finding.missing:
        yield (f"  in full: {finding.missing}",)


def _place(access: Access, source: str, style: str, width: int | None) -> Iterator[Line]:
    """An access with its line; an operation that accesses no memory has no proxy and no bytes."""
    place = access.place
    what = (
        f"{access.action} by {access.thread} ({access.proxy} proxy) of {place}"
        if place
        else f"executed by {access.thread}"
    )
    span = access.span
    lines = source.split("\n") if span is not None else []
    number = str(span.line) if span is not None else ""
    room = MOST if width is None else min(MOST, max(width - len(number) - 15, 12))
    if span is None or not source or not 0 < span.line <= len(lines) or span.length > room:
        yield (f"  {what}: {abridge_registers(access.instruction)}",)
        if span is not None:
            yield from _at(access, span)
        return
    yield (f"  {what}",)
    yield from _at(access, span)
    text, caret, length = window(lines[span.line - 1].replace("\t", " "), span.column - 1, span.length, room)
    yield f"    {number} | ", text
    yield f"    {' ' * len(number)} | " + " " * caret, ("^" * length, style)


def _at(access: Access, span: Span) -> Iterator[Line]:
    """The place of an access and its source location."""
    yield "    --> ", (f"{span.path}:{span.line}:{span.column}", "dim")
    if access.source:
        yield "    from ", (compiled_from(access), "dim")
