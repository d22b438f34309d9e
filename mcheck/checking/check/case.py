"""``mcheck check``: options, the result for a file, and counts."""

from __future__ import annotations

from dataclasses import field, replace

from mcheck.answers.result import Covers, LaunchAnswer
from mcheck.answers.verdict_rules import is_decisive
from mcheck.base.errors import InternalError, McheckError, Span
from mcheck.base.reasons import Reasons, format_reasons
from mcheck.base.records import dataclass
from mcheck.base.verdicts import Verdict
from mcheck.checking.run.case import Settings, kinds_hold
from mcheck.findings.finding import Finding
from mcheck.ir.program import CLEAN, Expectation, Kinds


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of ``mcheck check`` beside ``Settings``. ``select`` and ``ignore`` are codes or their prefixes."""

    engine: str = "auto"
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    limit: int | None = None
    launch: LaunchText | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchText:
    """The launch of a module as given by the user: the text and path of a JSON file, and command-line options.

    ``fields`` and ``params`` are (name, value) pairs, as on the command line.
    """

    text: str | None = None
    path: str = ""
    fields: tuple[tuple[str, str], ...] = ()
    params: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What an answer is about, as reports name it; a ``Program`` is one."""

    path: str
    name: str
    source: str
    expectation: Expectation = field(default_factory=Expectation)
    warnings: tuple[tuple[str, Span | None], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """The result of checking one file."""

    path: str
    name: str
    verdict: Verdict
    findings: tuple[Finding, ...] = ()
    suppressed: tuple[tuple[Finding, str], ...] = ()
    deselected: tuple[Finding, ...] = ()
    expected: Kinds = ()
    expectation_span: Span | None = None
    assumptions: tuple[str, ...] = ()
    executions: int = 0
    engine: str = "protocol"
    chosen: str = ""
    seconds: float = 0.0
    reasons: Reasons = ()
    warnings: tuple[tuple[str, Span | None], ...] = ()
    problem: McheckError | None = None
    debug: str = ""
    source: str = ""
    digest: str = ""
    cut: bool = False
    covers: Covers | None = None
    launches: tuple[LaunchAnswer, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "verdict", Verdict(self.verdict))

    @property
    def reason(self) -> str | None:
        """The reasons as text."""
        return format_reasons(self.reasons)

    @property
    def cacheable(self) -> bool:
        """Whether the same texts and options always give this result, so that it can be cached."""
        return self.verdict is not Verdict.ERROR and self.problem is None and not self.cut

    def with_names(self, path: str, model: str) -> Checked:  # noqa: ARG002 - a report names the model once, at its head
        """The same result for a file and a model of other names."""
        return replace(self, path=path)

    @property
    def ignored(self) -> tuple[Finding, ...]:
        """Deselected and suppressed findings that would decide the verdict."""
        return tuple(f for f in (*(g for g, _ in self.suppressed), *self.deselected) if is_decisive(f))

    @property
    def all_ignored(self) -> bool:
        """Whether all findings that would decide the verdict are deselected or suppressed."""
        return bool(self.ignored) and not any(map(is_decisive, self.findings))

    @property
    def headline(self) -> str:
        """The verdict in a word: ``ignored`` if all findings are deselected or suppressed."""
        return "ignored" if self.verdict is Verdict.FINDING and self.all_ignored else self.verdict

    @property
    def ignored_text(self) -> str:
        """The number of ignored findings and their codes, as text; empty if there are none."""
        if not self.ignored:
            return ""
        said = f"{len(self.ignored)} ignored: {', '.join(sorted({f.code for f in self.ignored}))}"
        return f"no finding except {said}" if self.all_ignored else f"besides {said}"

    @property
    def as_expected(self) -> bool:
        """Whether the findings are those that the file expects; without ``expect`` lines, whether none decides the
        verdict.
        """
        kinds = self.expected or CLEAN
        return kinds_hold(kinds, self.findings)

    @property
    def status(self) -> str:
        """``ok``, ``finding`` (or an expected one is missing), ``unknown`` or ``error``."""
        if self.verdict is Verdict.ERROR:
            return "error"
        if self.verdict.is_open:
            if self.expected and self.expected != CLEAN and self.as_expected:
                return "ok"
            return "unknown" if self.as_expected or self.expected not in ((), CLEAN) else "finding"
        return "ok" if self.as_expected else "finding"

    @property
    def crashed(self) -> bool:
        """Whether the error is a bug of mcheck."""
        return isinstance(self.problem, InternalError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Counts by verdict, and the exit status. ``ignored``: files with findings that are all ignored."""

    files: int
    clean: int
    findings: int
    ignored: int
    unknown: int
    error: int
    exit_status: int
    seconds: float


def tally(results: list[Checked], seconds: float) -> Tally:
    """Counts the results; for the exit status 2 beats 1 beats 3, and an internal error (70) beats all."""
    statuses = {r.status for r in results}
    status = 70 if any(r.crashed for r in results) else 2 if "error" in statuses else 1 if "finding" in statuses else 0
    if status == 0 and "unknown" in statuses:
        status = 3
    verdicts = [r.verdict for r in results]
    return Tally(
        files=len(results),
        clean=verdicts.count(Verdict.PROVED),
        findings=verdicts.count(Verdict.FINDING),
        unknown=sum(v.is_open for v in verdicts),
        error=verdicts.count(Verdict.ERROR),
        ignored=sum(r.headline == "ignored" for r in results),
        exit_status=status,
        seconds=seconds,
    )


__all__ = ["Checked", "Options", "Settings", "Tally", "tally"]
