"""What the findings about a program name: lines, objects and numbers, from which repairs are derived."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mcheck.base.records import dataclass
from mcheck.checking.fences.outline import Outline, Statement
from mcheck.findings.finding import Finding, mentioned_lines
from mcheck.findings.fix import Insert, insertions, phases_of
from mcheck.findings.fix_words import mentioned, tell, things

_NAME = re.compile(r"([A-Za-z_]\w*)(?:\[\d+\])?@\d")
_NUMBER = re.compile(r"(?<![\w.:\[])\d+(?![\w.\]])")
_LINES = re.compile(r"\blines? \d+(?:(?:, | and )\d+)*")
_PROXIES = {"RACE004", "RACE005", "RACE006", "RACE007", "RACE008"}
_PHASE = re.compile(r"[Pp]hase (?P<phase>\d+)(?: \(parity \d\)|\))? of (?P<barrier>[A-Za-z_]\w*(?:\[\d+\])?@\d+)")


@dataclass(frozen=True, slots=True)
class Facts:
    """What findings name. ``generic`` and ``asynchronous``: the lines of accesses, ``mentioned``: all other lines;
    ``phases``: parity and mbarrier of the phases that they speak of.
    """

    codes: frozenset[str]
    kinds: frozenset[str]
    generic: frozenset[int]
    asynchronous: frozenset[int]
    mentioned: frozenset[int]
    objects: frozenset[str]
    numbers: tuple[int, ...]
    phases: tuple[tuple[int, str], ...]
    advice: tuple[tuple[Insert, ...], ...]

    @property
    def lines(self) -> frozenset[int]:
        """All lines that the findings name."""
        return self.generic | self.asynchronous | self.mentioned

    @property
    def only_proxies(self) -> bool:
        """Whether nothing but proxy fences is missing."""
        return bool(self.codes) and self.codes <= _PROXIES

    @property
    def accesses(self) -> frozenset[int]:
        """The lines of accesses."""
        return self.generic | self.asynchronous


def collect_facts(findings: Sequence[Finding]) -> Facts:
    """What these findings name."""
    fixes = [fix for finding in findings for fix in finding.fixes]
    messages = [finding.message for finding in findings]
    texts = (*messages, *(part for fix in fixes for phrase, _ in tell(fix) for part in phrase if isinstance(part, str)))
    accesses = [access for finding in findings for access in finding.accesses if access.line is not None]
    generic = frozenset(each.line for each in accesses if each.line and not each.asynchronous)
    asynchronous = frozenset(each.line for each in accesses if each.line and each.asynchronous)
    objects = {name for text in (*messages, *things(fixes)) for name in _NAME.findall(text)}
    objects |= {name[0] for each in accesses if (name := re.match(r"[A-Za-z_]\w*", each.object))}
    numbers = (int(number) for text in texts for number in _NUMBER.findall(_LINES.sub("", text)))
    phases = [(int(m["phase"]) % 2, m["barrier"]) for text in messages for m in _PHASE.finditer(text)]
    phases += [(phase.number % 2, phase.bar) for phase in phases_of(fixes) if phase.number is not None]
    named = {line for text in messages for line in mentioned_lines(text)} | {site.line for site in mentioned(fixes)}
    return Facts(
        frozenset(str(finding.code) for finding in findings),
        frozenset(finding.kind for finding in findings),
        generic,
        asynchronous,
        frozenset(named) - generic - asynchronous,
        frozenset(objects),
        tuple(dict.fromkeys(numbers)),
        tuple(dict.fromkeys(phases)),
        tuple(dict.fromkeys(steps for finding in findings if (steps := insertions(finding.fixes)))),
    )


def identify(finding: Finding, program: Outline) -> tuple[str, ...]:
    """What stays of a finding when lines move: its code, and the statements of its accesses."""
    lines = frozenset(access.line for access in finding.accesses if access.line is not None)
    return (str(finding.code), *(statement.text for statement in program.at_lines(lines)))


def involved_roles(program: Outline, facts: Facts) -> frozenset[int]:
    """The roles that a finding names a line of; all of them if there are none."""
    named = frozenset(statement.role for statement in program.at_lines(facts.lines))
    return named or frozenset(range(len(program.roles)))


def touches(statement: Statement, facts: Facts) -> bool:
    """Whether a statement is at a line of a finding, or names one of its objects."""
    names = set(re.findall(r"[A-Za-z_]\w*", statement.instruction.partition(" ")[2]))
    return statement.line in facts.lines or bool(names & facts.objects)
