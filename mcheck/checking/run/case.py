"""``mcheck run``: a test to run, settings, its result, and counts."""

from __future__ import annotations

from dataclasses import replace

from mcheck.answers.result import Outcome
from mcheck.base.errors import InternalError, McheckError, Span
from mcheck.base.reasons import Reasons, format_reasons
from mcheck.base.records import dataclass
from mcheck.base.verdicts import Verdict
from mcheck.findings.finding import Finding
from mcheck.ir.condition import Notation
from mcheck.ir.program import CLEAN, Kinds

DEFAULT_MODEL = "ptx-9.0"


@dataclass(frozen=True, slots=True)
class Case:
    """A file to run; ``expected`` is the verdict from a CSV file, which overrides the file's own line.

    ``text``: the contents of the file if they are known already, as in an editor; then the file is not read.
    """

    path: str
    expected: str | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How tests are run. ``model`` is ``None`` if the file, or else the default, decides.

    ``timeout`` (seconds) and ``memory`` (bytes) are for each test, from reading it to its answer. ``witnesses``: each
    outcome comes with a trace. ``assume`` names assumptions (``mcheck.ir.assumptions``), ``without`` the passes that
    are off (``mcheck.engines.protocol.passes``).
    """

    model: str | None = None
    engine: str = "auto"
    prop: str = "spec"
    profile: str = "ptx"
    verdict_only: bool = False
    unroll: int = 2
    timeout: float | None = None
    memory: int | None = None
    warnings_as_errors: bool = False
    witnesses: bool = False
    assume: tuple[str, ...] = ()
    without: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of one test, with its expectation.

    ``problem``: the exception behind an error or an unknown verdict. ``assumptions``: those that the user chose.
    ``ends``: ``mcheck.answers.result.Answer.ends``. ``debug``: the traceback of an internal error, shown on request
    only. ``source``: the program's text, empty if it could not be read; ``digest``: that of the model
    (``mcheck.cat.ast.Model``). ``cut``: a limit of time or memory kept the answer from being more.
    """

    path: str
    name: str
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
    executions: int = 0
    engine: str = "explicit"
    chosen: str = ""
    seconds: float = 0.0
    reasons: Reasons = ()
    warnings: tuple[tuple[str, Span | None], ...] = ()
    assumptions: tuple[str, ...] = ()
    problem: McheckError | None = None
    debug: str = ""
    source: str = ""
    notation: tuple[tuple[str, Notation], ...] = ()
    digest: str = ""
    cut: bool = False

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

    def with_names(self, path: str, model: str) -> Result:
        """The same result for a file and a model of other names."""
        return replace(self, path=path, model=model)

    @property
    def status(self) -> str:
        """``ok``, ``mismatch``, ``unknown`` or ``error``; a violated ``expect clean`` is certain, verdict or not."""
        if self.verdict is Verdict.ERROR:
            return "error"
        if self.verdict is Verdict.UNKNOWN:
            clean_broken = self.expected_kinds == CLEAN and not kinds_hold(self.expected_kinds, self.findings)
            return "mismatch" if clean_broken else "unknown"
        if self.is_vacuous or (self.expected is not None and self.expected != self.verdict):
            return "mismatch"
        return "ok" if kinds_hold(self.expected_kinds, self.findings) else "mismatch"

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
    def headline(self) -> str:
        """The status in a word.

        ``undefined`` or ``deadlock`` if no execution ends for that reason; ``found`` if all is well except for errors
        in a test without expectations.
        """
        if self.is_vacuous:
            kinds = {f.kind for f in self.findings if f.severity == "error"}
            return next((kind for kind in ("undefined", "deadlock") if kind in kinds), self.status)
        nothing_expected = self.expected is None and not self.expected_kinds
        return "found" if self.status == "ok" and nothing_expected and self.unexpected_errors else self.status

    @property
    def was_read(self) -> bool:
        """Whether the program could be read; otherwise its condition and expectations are unknown."""
        return bool(self.source) or self.verdict.is_of_condition

    @property
    def observes_nothing(self) -> bool:
        """Whether there are no states because the test names nothing to observe."""
        return self.kind == "none" and not self.reasons and not self.outcomes

    @property
    def ok(self) -> bool:
        """Whether the result is as expected."""
        return self.status == "ok"

    @property
    def crashed(self) -> bool:
        """Whether the error is a bug of mcheck."""
        return isinstance(self.problem, InternalError)


def kinds_hold(kinds: Kinds, findings: tuple[Finding, ...]) -> bool:
    """Whether every ``expect`` line holds: one of its kinds was found; ``clean`` permits review and advice."""
    grave = {f.kind for f in findings if f.severity in ("error", "review")}
    clean = not any(f.severity == "error" for f in findings)
    return all(any(clean if kind == "clean" else kind in grave for kind in line) for line in kinds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Counts by status.

    ``internal``: errors that are bugs of mcheck. ``unjudged``: tests without expectations, ``found`` of them with
    errors.
    """

    tests: int
    ok: int
    mismatch: int
    unknown: int
    error: int
    internal: int = 0
    unjudged: int = 0
    found: int = 0
    seconds: float = 0.0

    @property
    def exit_status(self) -> int:
        """0, 1, 2 or 3; 2 beats 1 beats 3, and an internal error (70) beats all."""
        if self.internal:
            return 70
        if self.error:
            return 2
        if self.mismatch:
            return 1
        return 3 if self.unknown else 0
