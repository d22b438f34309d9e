"""Results of the ``mcheck.api`` functions: plain data, displayed in notebooks as tables and pictures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from mcheck.answers.result import Value
from mcheck.api.html import paragraph, table
from mcheck.base.errors import InputError
from mcheck.base.records import dataclass
from mcheck.findings.finding import Finding

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd

    from mcheck.checking.fences.examination import Examined
    from mcheck.checking.run.result import Result
    from mcheck.events.execution_graph import Execution

State = Mapping[str, Value]
"""A final state: the value, or ``"unknown"``, of each register and location that the test names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """The result of ``run``. The fields are those of ``mcheck run --format json``.

    Attributes:
        path: The file, or ``test.litmus`` for a text.
        name: The name in the test's first line.
        condition: The condition as written, empty if there is none.
        kind: ``exists``, ``~exists``, ``forall`` or ``none``.
        verdict: ``pass``, ``fail`` or ``unknown``; in a suite also ``error``.
        expected: ``pass`` or ``fail``, or ``None`` if the test has no expectation.
        model: The model.
        ok: Whether the verdict and the findings match the expectations of the test.
        states: The final states, sorted.
        complete: Whether these are all.
        undefined: Whether some execution has undefined behaviour, so that anything may happen.
        findings: Races, undefined behaviour and deadlocks.
        executions: The number of executions explored.
        engine: The engine that gave the answer.
        seconds: The time it took.
        reason: The reason for the verdict, where it needs one.
    """

    path: str
    name: str
    condition: str
    kind: str
    verdict: str
    expected: str | None
    model: str
    ok: bool
    states: tuple[State, ...]
    complete: bool
    undefined: bool
    findings: tuple[Finding, ...]
    executions: int
    engine: str
    seconds: float
    reason: str | None

    @classmethod
    def from_result(cls, result: Result) -> RunResult:
        """Convert a result of the command line's suites."""
        own = {f.name: getattr(result, f.name) for f in fields(cls) if f.name != "states"}
        states = tuple(dict(outcome.state) for outcome in result.outcomes)
        return cls(states=states, **{**own, "verdict": result.verdict.value})

    def frame(self) -> pd.DataFrame:
        """The states as a pandas data frame: a row per state, a column per register and location."""
        return _pandas().DataFrame(list(self.states))

    def _repr_html_(self) -> str:
        said = [f"{self.name}: {self.verdict}", *([self.reason] if self.reason else [])]
        head = paragraph(f"{self.condition or 'no condition'} under {self.model}", *said)
        return head + _states(self.states) + _findings(self.findings)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """The result of ``check``. The fields are those of ``mcheck check --format json``.

    Attributes:
        path: The file, or ``test.litmus`` for a text.
        name: The name in the first line.
        verdict: ``proved``, ``bounded``, ``finding`` or ``unknown``.
        findings: Races, undefined behaviour and deadlocks, without those that are left out.
        assumptions: The assumptions of the answer.
        executions: The number of executions explored.
        engine: The engine that gave the answer.
        seconds: The time it took.
        reason: The reason why the verdict is not ``proved``.
        ignored: Findings, except advice, that the file suppresses or that are not selected; with only such findings
            the verdict is still ``finding``.
    """

    path: str
    name: str
    verdict: str
    findings: tuple[Finding, ...]
    assumptions: tuple[str, ...]
    executions: int
    engine: str
    seconds: float
    reason: str | None
    ignored: tuple[Finding, ...] = ()

    @classmethod
    def from_result(cls, result: Result) -> CheckResult:
        """Convert a result of the command line."""
        own = {f.name: getattr(result, f.name) for f in fields(cls)}
        return cls(**{**own, "verdict": result.verdict.value})

    def _repr_html_(self) -> str:
        said = [self.reason] if self.reason else []
        if self.ignored:
            said.append(f"ignored: {', '.join(sorted({f.code for f in self.ignored}))}")
        given = [f"assuming: {'; '.join(self.assumptions)}"] if self.assumptions else []
        return paragraph(f"{self.name}: {self.verdict}", *said, *given) + _findings(self.findings)


@dataclass(frozen=True, slots=True, kw_only=True)
class FencesResult:
    """The result of ``fences``. The fields but the last are those of ``mcheck fences --format json``.

    Attributes:
        path: The file, or ``test.litmus`` for a text.
        verdict: The verdict on the program as it is.
        removable: Statements that could go or be weaker.
        needed: Statements without which there is a finding.
        undecided: Statements without which the answer is ``bounded`` or ``unknown``.
        together: The lines of a set that can change together.
        changes: The statements at these lines, each with what it becomes.
        cost: The cycles of all synchronisation, each statement once.
        saved: What the set saves of them.
        repairs: Changes after which a program with findings is proved, the cheapest first.
        reason: The reason why the program is not examined, or why there is no repair.
        fixed: The text with the cheapest repair, or without what can go together; ``None`` if nothing changes.
    """

    path: str
    verdict: str
    removable: Sequence[Mapping[str, Any]]
    needed: Sequence[Mapping[str, Any]]
    undecided: Sequence[Mapping[str, Any]]
    together: Sequence[int]
    changes: Sequence[Mapping[str, Any]]
    cost: float
    saved: float
    repairs: Sequence[Mapping[str, Any]]
    reason: str | None
    fixed: str | None

    @classmethod
    def from_examined(cls, examined: Examined) -> FencesResult:
        """Convert an examination of the command line."""
        from mcheck.report.fences import entry

        given: dict[str, Any] = entry(examined)
        return cls(**given, fixed=examined.fixed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A final state with an execution that ends in it.

    Attributes:
        state: The state.
        executions: The number of executions that end in it; 0 for a forbidden state.
        witness: The steps of one of them as text; for a forbidden state the cycle that forbids it.
        axiom: The axiom that every execution with this state violates; ``None`` for an allowed state.
        graph: The execution as a networkx graph (see ``executions``), if requested.
    """

    state: State
    executions: int
    witness: tuple[str, ...]
    axiom: str | None
    graph: nx.MultiDiGraph | None
    _drawn: Execution | None

    def picture(self, form: str = ".svg") -> str | bytes:
        """The picture of the execution: ``.svg``, ``.tikz``, ``.dot`` or ``.graphml`` as text, ``.pdf`` as bytes.

        Raises:
            InputError: The state has no picture, the format is unknown, or a package it needs is not installed.
        """
        from mcheck.report.picture.formats import picture

        if self._drawn is None:
            raise InputError("this state has no drawn execution")
        return picture(self._drawn, form)

    def save(self, path: str | Path) -> None:
        """Write the picture to a file, in the format of its suffix."""
        drawn = self.picture(str(path))
        Path(path).write_bytes(drawn if isinstance(drawn, bytes) else drawn.encode())

    def _repr_svg_(self) -> str | None:
        from mcheck.report.picture.svg import draw

        return None if self._drawn is None else draw(self._drawn)

    def _repr_html_(self) -> str:
        why = [f"forbidden by {self.axiom}"] if self.axiom else []
        return _states((self.state,)) + paragraph(*why) + (self._repr_svg_() or "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes(Sequence[Outcome]):
    """The outcomes of a test, as a sequence of the allowed ones.

    Attributes:
        name: The name of the test.
        model: The model.
        allowed: The states in which some execution ends.
        forbidden: States that the model forbids, as many as requested.
        complete: Whether ``allowed`` is complete.
        undefined: Whether some execution has undefined behaviour.
        findings: Races, undefined behaviour and deadlocks.
    """

    name: str
    model: str
    allowed: tuple[Outcome, ...]
    forbidden: tuple[Outcome, ...]
    complete: bool
    undefined: bool
    findings: tuple[Finding, ...]

    @overload
    def __getitem__(self, index: int) -> Outcome: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Outcome, ...]: ...
    def __getitem__(self, index: int | slice) -> Outcome | tuple[Outcome, ...]:
        return self.allowed[index]

    def __len__(self) -> int:
        return len(self.allowed)

    def frame(self) -> pd.DataFrame:
        """The states as a pandas data frame, with their numbers of executions and the axioms that forbid them."""
        rows = [{**o.state, "executions": o.executions, "axiom": o.axiom} for o in (*self.allowed, *self.forbidden)]
        return _pandas().DataFrame(rows)

    def _repr_html_(self) -> str:
        head = paragraph(f"{self.name} under {self.model}", *(["incomplete states"] if not self.complete else []))
        rows: list[dict[str, object]] = [{**o.state, "executions": o.executions} for o in self.allowed]
        rows += [{**o.state, "executions": f"forbidden by {o.axiom}"} for o in self.forbidden]
        return head + table(rows) + _findings(self.findings)


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteResult(Sequence[RunResult]):
    """The results of several tests, as a sequence in the order of the files.

    Attributes:
        results: The result of each test; for a test that cannot be read, ``error`` with the reason.
    """

    results: tuple[RunResult, ...]

    @overload
    def __getitem__(self, index: int) -> RunResult: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[RunResult, ...]: ...
    def __getitem__(self, index: int | slice) -> RunResult | tuple[RunResult, ...]:
        return self.results[index]

    def __len__(self) -> int:
        return len(self.results)

    @property
    def ok(self) -> bool:
        """Whether every test is as expected."""
        return all(result.ok for result in self.results)

    def frame(self) -> pd.DataFrame:
        """The results as a pandas data frame: a row per test, with numbers of ``states`` and ``findings``."""
        return _pandas().DataFrame(list(self._rows()))

    def _rows(self) -> Iterator[dict[str, Any]]:
        for result in self.results:
            row = {f.name: getattr(result, f.name) for f in fields(result)}
            codes = ",".join(sorted({finding.code for finding in result.findings}))
            yield {**row, "states": len(result.states), "findings": len(result.findings), "codes": codes}

    def _repr_html_(self) -> str:
        shown = ("name", "verdict", "expected", "ok", "states", "codes", "seconds")
        rows = [{key: row[key] for key in shown} | {"seconds": f"{row['seconds']:.3f}"} for row in self._rows()]
        good = sum(result.ok for result in self.results)
        return paragraph(f"{len(self.results)} tests, {good} as expected") + table(rows)


def _states(states: Sequence[State]) -> str:
    return table([dict(state) for state in states])


def _findings(findings: Sequence[Finding]) -> str:
    rows = [{"code": f.code, "severity": f.severity, "message": f.message, "missing": f.missing} for f in findings]
    return table(rows)


def _pandas() -> Any:
    try:
        import pandas as pd
    except ImportError:
        raise InputError("pandas is not installed", hint="pip install '.[pandas]' in a checkout of mcheck") from None
    return pd
