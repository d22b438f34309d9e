"""What the findings about a program name: lines, objects and numbers, from which repairs are derived."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mcheck.base.phrase import sites, things
from mcheck.base.records import dataclass
from mcheck.checking.fences.outline import Outline, Statement
from mcheck.findings.finding import Finding
from mcheck.findings.fix import Insert, Phase, insertions, phases_of
from mcheck.findings.fix_words import tell
from mcheck.findings.waits import OfMbarrier

_NUMBER = re.compile(r"(?<![\w.:\[])\d+(?![\w.\]])")
_PROXIES = {"RACE004", "RACE005", "RACE006", "RACE007", "RACE008"}


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
    phrases = [finding.said for finding in findings] + [phrase for fix in fixes for phrase, _ in tell(fix)]
    accesses = [access for finding in findings for access in finding.accesses if access.line is not None]
    generic = frozenset(each.line for each in accesses if each.line and not each.asynchronous)
    asynchronous = frozenset(each.line for each in accesses if each.line and each.asynchronous)
    objects = {thing.ring for phrase in phrases for thing in things(phrase)}
    objects |= {name[0] for each in accesses if (name := re.match(r"[A-Za-z_]\w*", each.object))}
    texts = (part for phrase in phrases for part in phrase if isinstance(part, str))
    numbers = (int(number) for text in texts for number in _NUMBER.findall(text))
    goals = [wait.goal for finding in findings for wait in finding.waits]
    meant = [Phase(goal.bar, goal.meant) for goal in goals if isinstance(goal, OfMbarrier)]
    phases = [(phase.number % 2, str(phase.bar)) for phase in (*meant, *phases_of(fixes)) if phase.number is not None]
    named = {site.line for phrase in phrases for site in sites(phrase)}
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
