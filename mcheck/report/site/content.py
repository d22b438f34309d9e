"""The content of a page, as data for the templates."""

from __future__ import annotations

import re

from mcheck.base import verdicts
from mcheck.base.reasons import Reasons
from mcheck.base.records import dataclass, replace
from mcheck.checking.run.result import Result
from mcheck.findings.finding import Finding
from mcheck.ir.program import Kinds
from mcheck.report.site.listing import Listing


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer under one model. ``verdict`` is empty if the model does not cover the program, and ``clean`` or
    ``finding`` if the test has no condition. ``has_errors``: an error was found; ``cut``: a time limit cut the answer.
    """

    model: str
    verdict: str
    states: int
    complete: bool
    undefined: bool
    reason: str
    own: bool
    has_errors: bool = False
    cut: bool = False


def verdict_from_checked(checked: Result, model: str) -> Verdict:
    """The verdict of a file that is only checked for findings."""
    reason = "; ".join(filter(None, (checked.reason, checked.ignored_text)))
    return Verdict(model, checked.headline, 0, True, False, reason, True)


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table of outcomes.

    ``holds``: whether the formula of the condition holds, in words. ``seen``: how often hardware showed the state, if
    there are observations.
    """

    values: tuple[str, ...]
    allowed: bool
    holds: str
    executions: int
    axiom: str = ""
    explanation: str = ""
    picture: int = -1
    seen: int = 0


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawn execution: ``svg`` for the page, ``steps`` as text."""

    number: int
    caption: str
    svg: str
    steps: tuple[str, ...]

    @property
    def width(self) -> int:
        """The width in pixels."""
        found = re.search(r'<svg[^>]*\swidth="(\d+)"', self.svg)
        return int(found[1]) if found else 0


@dataclass(frozen=True, slots=True)
class Found:
    """A finding with its catalogue entry and the number of its picture."""

    finding: Finding
    name: str
    explanation: tuple[str, ...]
    remedy: str
    section: str
    picture: int = -1


@dataclass(frozen=True, slots=True)
class Problem:
    """An error in a text; ``line`` is 0 if it has none or is in another file."""

    text: str
    line: int = 0
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """The page of one test. ``problem`` is the reason why it only has the text. ``digest`` is the digest of its model;
    ``cut``: a time limit cut the answer.
    """

    name: str
    path: str
    suite: str
    file: str
    source: str
    doc: tuple[str, ...] = ()
    sections: tuple[str, ...] = ()
    sketch: bool = False
    launch: str = ""
    assumptions: tuple[str, ...] = ()
    data: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    listing: Listing | None = None
    kind: str = "none"
    condition: str = ""
    question: str = ""
    expected: tuple[str, ...] = ()
    kinds: Kinds = ()
    status: str = "ok"
    verdicts: tuple[Verdict, ...] = ()
    labels: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()
    seen: str = ""
    more_forbidden: bool = False
    pictures: tuple[Picture, ...] = ()
    too_large: bool = False
    findings: tuple[Found, ...] = ()
    model: str = ""
    problem: str = ""
    problem_title: str = "This test could not be read"
    problems: tuple[Problem, ...] = ()
    digest: str = ""
    cut: bool = False
    reasons: Reasons = ()

    @property
    def cacheable(self) -> bool:
        """Whether the page depends only on the texts and options, so that it can be cached."""
        return not self.problem and not self.cut

    def with_names(self, path: str, model: str) -> Page:
        """The same page under other names of file and model."""
        return replace(self, path=path, model=model)

    @property
    def verdict(self) -> str:
        """The verdict under the model of the test."""
        return next((v.verdict for v in self.verdicts if v.own), "error" if self.problem else "unknown")

    @property
    def has_errors(self) -> bool:
        """Whether an error was found, which the verdict ``pass`` of a condition does not exclude."""
        return any(f.finding.severity == "error" for f in self.findings)

    @property
    def is_clean(self) -> bool:
        """Whether everything was checked and nothing found."""
        own = next((v for v in self.verdicts if v.own), None)
        whole = own is not None and (own.verdict == verdicts.Verdict.PROVED if self.sketch else own.complete)
        return whole and not self.findings

    @property
    def as_expected(self) -> bool:
        """Whether the file expects findings and they match."""
        return bool(self.kinds) and self.status == "ok"

    @property
    def lines_in_question(self) -> frozenset[int]:
        """The lines with an error in the text."""
        return frozenset(p.line for p in self.problems)
