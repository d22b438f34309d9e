"""``Result``: the answer about one file, with what the file expects, and the judgement of one by the other."""

from __future__ import annotations

from dataclasses import field

from mcheck.answers.result import AnyCtas, Covers, LaunchAnswer, Outcome
from mcheck.answers.verdict_rules import is_decisive
from mcheck.base.errors import InternalError, McheckError, Span
from mcheck.base.reasons import Cause, Reasons, format_reasons
from mcheck.base.records import dataclass, replace
from mcheck.base.verdicts import Verdict
from mcheck.checking.policy.question import Completeness
from mcheck.findings.finding import Finding
from mcheck.ir.condition import Notation
from mcheck.ir.program import CLEAN, Kinds


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of running or checking one file, with its expectation.

    ``about``: what was asked; a result about findings is judged by them, any other by its verdict as well
    (``judge_findings``, ``judge_verdict``). ``problem``: the exception behind an error or an unknown verdict.
    ``assumptions``: those that the answer rests on; of a run, those that the user chose. ``ends``:
    ``mcheck.answers.result.Answer.ends``. ``suppressed`` findings are left out by a comment, with its reason,
    ``deselected`` ones by the user. ``debug``: the traceback of an internal error, shown on request only. ``source``:
    the program's text, empty if it could not be read; ``digest``: that of the model (``mcheck.cat.ast.Model``).
    ``cut``: a limit of time or memory kept the answer from being more. ``known``: findings that the user's baseline
    has, ``None`` without one; ``all_found``: a check has found everything that there is.
    """

    path: str
    name: str
    about: Completeness = Completeness.STATES
    condition: str = ""
    kind: str = "none"
    verdict: Verdict
    expected: str | None = None
    expected_kinds: Kinds = ()
    expectation_span: Span | None = None
    model: str
    outcomes: tuple[Outcome, ...] = ()
    complete: bool = False
    undefined: bool = False
    ends: bool = True
    findings: tuple[Finding, ...] = ()
    suppressed: tuple[tuple[Finding, str], ...] = ()
    deselected: tuple[Finding, ...] = ()
    known: tuple[Finding, ...] | None = None
    all_found: bool = False
    executions: int = 0
    engine: str = "explicit"
    chosen: str = ""
    seconds: float = 0.0
    reasons: Reasons = ()
    warnings: tuple[tuple[str, Span | None], ...] = ()
    assumptions: tuple[str, ...] = ()
    problem: McheckError | None = None
    debug: str = ""
    source: str = field(default="", repr=False)
    notation: tuple[tuple[str, Notation], ...] = ()
    digest: str = ""
    cut: bool = False
    covers: Covers | None = None
    ctas: AnyCtas | None = None
    launches: tuple[LaunchAnswer, ...] = ()
    filled_once: tuple[str, ...] = ()

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

    def ended_by(self, lost: Result) -> Result:
        """What was known when the process was stopped, for the reason that ``lost`` has, with how far it had come."""
        explored = "one execution was" if self.executions == 1 else f"{self.executions} executions were"
        came = f"{explored} explored by then, and a longer limit may show more"
        reasons = tuple(
            replace(r, during=f"{r.during}; {came}" if r.during else came) if r.cause is Cause.TIME else r
            for r in lost.reasons
        )
        verdict = self.verdict if self.verdict is Verdict.FINDING else Verdict.UNKNOWN
        return replace(self, verdict=verdict, reasons=reasons, seconds=lost.seconds, cut=True)

    def with_names(self, path: str, model: str) -> Result:
        """The same result for a file and a model of other names."""
        return replace(self, path=path, model=model)

    @property
    def program(self) -> str:
        """The path of the program whose text is ``source``: of a compiled source that of the module made of it."""
        findings = (*self.findings, *(self.known or ()))
        return next((a.path for f in findings for a in f.accesses if a.path is not None), self.path)

    @property
    def status(self) -> str:
        """``ok``, ``mismatch`` (of a run) or ``finding`` (of a check), ``unknown`` or ``error``."""
        if self.verdict is Verdict.ERROR:
            return "error"
        return judge_findings(self) if self.about is Completeness.FINDINGS else judge_verdict(self)

    @property
    def headline(self) -> str:
        """The result in a word: of a check the verdict, of a run the status, unless something else says more.

        ``ignored`` if all findings are deselected or suppressed; ``undefined`` or ``deadlock`` if no execution ends for
        that reason; ``found`` if all is well except for errors in a test without expectations.
        """
        if self.about is Completeness.FINDINGS:
            return "ignored" if self.verdict is Verdict.FINDING and self.all_ignored else self.verdict
        if self.is_vacuous:
            kinds = {f.kind for f in self.findings if f.severity == "error"}
            return next((kind for kind in ("undefined", "deadlock") if kind in kinds), self.status)
        nothing_expected = self.expected is None and not self.expected_kinds
        return "found" if self.status == "ok" and nothing_expected and self.unexpected_errors else self.status

    @property
    def ok(self) -> bool:
        """Whether the result is as expected."""
        return self.status == "ok"

    @property
    def crashed(self) -> bool:
        """Whether the error is a bug of mcheck."""
        return isinstance(self.problem, InternalError)

    @property
    def was_read(self) -> bool:
        """Whether the program could be read; otherwise its condition and expectations are unknown."""
        return bool(self.source) or self.verdict.is_of_condition

    # --- of a run -------------------------------------------------------------------------------------------------

    @property
    def is_vacuous(self) -> bool:
        """Whether a test without condition and expectation has no execution that ends, each being undefined or stuck:
        then ``pass`` says nothing.
        """
        asks = self.kind != "none" or self.expected is not None or self.expected_kinds
        return self.verdict is Verdict.PASS and not self.ends and not asks

    @property
    def unexpected_errors(self) -> tuple[str, ...]:
        """The codes of errors that no ``expect`` line mentions."""
        spoken = {kind for line in self.expected_kinds for kind in line}
        return tuple(sorted({f.code for f in self.findings if f.severity == "error" and f.kind not in spoken}))

    @property
    def observes_nothing(self) -> bool:
        """Whether there are no states because the test names nothing to observe."""
        return self.kind == "none" and not self.reasons and not self.outcomes

    # --- of a check -----------------------------------------------------------------------------------------------

    @property
    def as_expected(self) -> bool:
        """Whether the findings are those that the file expects; without ``expect`` lines, whether none decides the
        verdict.
        """
        return kinds_hold(self.expected_kinds or CLEAN, self.findings)

    @property
    def ignored(self) -> tuple[Finding, ...]:
        """Deselected, suppressed and known findings that would decide the verdict."""
        others = (*(g for g, _ in self.suppressed), *self.deselected, *(self.known or ()))
        return tuple(f for f in others if is_decisive(f))

    @property
    def all_ignored(self) -> bool:
        """Whether all findings that would decide the verdict are deselected, suppressed or known."""
        return bool(self.ignored) and not any(map(is_decisive, self.findings))

    @property
    def ignored_text(self) -> str:
        """The number of ignored findings and their codes, as text; empty if there are none."""
        if not self.ignored:
            return ""
        said = f"{len(self.ignored)} ignored: {', '.join(sorted({f.code for f in self.ignored}))}"
        return f"no finding except {said}" if self.all_ignored else f"besides {said}"


def judge_verdict(result: Result) -> str:
    """The status of a run that is no error; a violated ``expect clean`` is certain, verdict or not."""
    as_expected = kinds_hold(result.expected_kinds, result.findings)
    if result.verdict is Verdict.UNKNOWN:
        return "mismatch" if result.expected_kinds == CLEAN and not as_expected else "unknown"
    if result.is_vacuous or (result.expected is not None and result.expected != result.verdict):
        return "mismatch"
    return "ok" if as_expected else "mismatch"


def judge_findings(result: Result) -> str:
    """The status of a check that is no error: ``finding`` also if an expected one is missing."""
    as_expected = result.as_expected
    if not result.verdict.is_open:
        return "ok" if as_expected else "finding"
    nothing_expected = result.expected_kinds in ((), CLEAN)
    if as_expected and not nothing_expected:
        return "ok"
    return "unknown" if as_expected or not nothing_expected else "finding"


def kinds_hold(kinds: Kinds, findings: tuple[Finding, ...]) -> bool:
    """Whether every ``expect`` line holds: one of its kinds was found; ``clean`` permits review and advice."""
    grave = {f.kind for f in findings if f.severity in ("error", "review")}
    clean = not any(f.severity == "error" for f in findings)
    return all(any(clean if kind == "clean" else kind in grave for kind in line) for line in kinds)
