"""What stands on a page, ready to be arranged: nothing here computes an answer."""

from __future__ import annotations

import re
from dataclasses import replace

from mcheck.base import verdicts
from mcheck.base.reasons import Reasons
from mcheck.base.records import dataclass
from mcheck.checking.check.case import Checked
from mcheck.findings.finding import Finding
from mcheck.ir.program import Kinds
from mcheck.report.site.listing import Listing


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer under one model; ``verdict`` is empty where the model has no rules for what the program does, and
    ``clean`` or ``finding`` where the test asks for no final state. ``grave``: an error was found; ``cut``: with more
    time there might be more to say.
    """

    model: str
    verdict: str
    states: int
    complete: bool
    undefined: bool
    reason: str
    own: bool
    grave: bool = False
    cut: bool = False


def of_checked(checked: Checked, model: str) -> Verdict:
    """The verdict of what is asked for findings alone."""
    reason = "; ".join(filter(None, (checked.reason, checked.ignored_text)))
    return Verdict(model, checked.headline, 0, True, False, reason, True)


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table of outcomes.

    ``holds``: whether the condition's formula is true in it, in words. ``seen``: how often a chip showed it, where the
    page says what was seen.
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
    """A drawn execution; ``svg`` stands in the page, ``steps`` is the execution in words."""

    number: int
    caption: str
    svg: str
    steps: tuple[str, ...]

    @property
    def width(self) -> int:
        """In pixels, as drawn."""
        found = re.search(r'<svg[^>]*\swidth="(\d+)"', self.svg)
        return int(found[1]) if found else 0


@dataclass(frozen=True, slots=True)
class Found:
    """A finding with what the catalogue says, and the picture that shows it."""

    finding: Finding
    name: str
    explanation: tuple[str, ...]
    remedy: str
    section: str
    picture: int = -1


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in a text; ``line`` is 0 where it stands in none or in another file."""

    text: str
    line: int = 0
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One test. ``problem`` is why there is nothing but its text. ``digest`` is that of its own model's text; ``cut``:
    with more time there might be more to show.
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
        """Whether the same texts and options have this page whenever it is made."""
        return not self.problem and not self.cut

    def with_names(self, path: str, model: str) -> Page:
        """The page of the same texts, where they are called so."""
        return replace(self, path=path, model=model)

    @property
    def verdict(self) -> str:
        """The answer under the test's own model."""
        return next((v.verdict for v in self.verdicts if v.own), "error" if self.problem else "unknown")

    @property
    def grave(self) -> bool:
        """Whether an error was found: a question that is answered with ``pass`` says nothing of that."""
        return any(f.finding.severity == "error" for f in self.findings)

    @property
    def clean(self) -> bool:
        """Whether nothing was found where everything was looked at."""
        own = next((v for v in self.verdicts if v.own), None)
        whole = own is not None and (own.verdict == verdicts.Verdict.PROVED if self.sketch else own.complete)
        return whole and not self.findings

    @property
    def as_expected(self) -> bool:
        """Whether the file says what has to be found, and that was."""
        return bool(self.kinds) and self.status == "ok"

    @property
    def lines_in_question(self) -> frozenset[int]:
        """The lines at which something is wrong with the text."""
        return frozenset(p.line for p in self.problems)
