"""What engines say of a program in terms that can be compared: kinds and codes of findings."""

from __future__ import annotations

from dataclasses import dataclass

from mcheck.cat.ast import Model
from mcheck.findings.finding import Finding
from mcheck.program.program import Program


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """An engine's findings of severity error or review; ``complete`` if no other execution could add to them."""

    complete: bool
    reason: str
    findings: tuple[Finding, ...]

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of the findings."""
        return kinds_of(self.findings)

    @property
    def codes(self) -> frozenset[str]:
        """The codes of the findings."""
        return frozenset(f.code for f in self.findings if f.severity in COUNTED)

    @property
    def causes(self) -> frozenset[str]:
        """The codes, those of races between generic accesses of one size taken for one (RACE001, RACE010)."""
        return frozenset("RACE001" if code == "RACE010" else code for code in self.codes)


COUNTED = ("error", "review")


def kinds_of(findings: tuple[Finding, ...]) -> frozenset[str]:
    """The kinds of the findings that count in a comparison."""
    return frozenset(f.kind for f in findings if f.severity in COUNTED)


def said(
    engine: str, program: Program, model: Model, *, profile: str = "ptx", unroll: int = 2, timeout: float | None = None
) -> Said:
    """The findings of the engine of this name."""
    if engine == "protocol":
        from mcheck.protocol.engine import check

        given = check(program, model, profile=profile, unroll=unroll, timeout=timeout, thorough=True)
        silent = given.reason is not None
        return Said(complete=not silent, reason=_brief(given.reason), findings=given.findings)
    if engine == "z3":
        from mcheck.solve.engine import answer
    else:
        from mcheck.explore.engine import answer
    told = answer(program, model, profile=profile, unroll=unroll, timeout=timeout, findings=True)
    return Said(complete=told.complete, reason=_brief(told.reason), findings=told.findings)


def _brief(reason: str | None) -> str:
    return (reason or "").partition(":")[0]
