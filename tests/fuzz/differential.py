"""Differential testing: the answers of the engines to one program, and their contradictions.

Compared are the kinds and codes of findings for review or worse, whether some execution is undefined, the verdict of
the condition and the final states. What an engine leaves open (``unknown``, ``bounded``) contradicts nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations

from mcheck.answers.result import State
from mcheck.answers.verdict_rules import makes_undefined
from mcheck.base.budget import processor_time
from mcheck.base.errors import McheckError
from mcheck.base.reasons import Cause, format_reasons, without_spans
from mcheck.base.verdicts import Verdict
from mcheck.cat import load_model
from mcheck.cat.ast import Model
from mcheck.checking.policy.agreement import COUNTED
from mcheck.checking.policy.engines import ask_engine
from mcheck.checking.policy.question import Completeness, Question
from mcheck.ir.program import Program
from tests.engine_findings import EngineFindings, engine_findings

ENGINES = ("explicit", "z3", "protocol")
LISTING = ("explicit", "z3")
"""The engines that list every execution, and so all states of undefined programs too."""

DEFAULT_MODEL = "ptx-9.0"
RACY = "the states of programs with races are not listed"
LIMIT = 5.0
"""Seconds of the processor for one answer."""

model_of = cache(load_model)
"""The model of this name, read once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineAnswer:
    """An engine's answer; ``kinds``, ``codes`` and ``states`` are ``None`` if incomplete."""

    verdict: str
    undefined: bool | None
    kinds: frozenset[str] | None
    codes: frozenset[str] | None
    states: frozenset[State] | None
    reason: str = ""
    none: bool = False
    """Whether the engine found no execution."""

    @property
    def open(self) -> bool:
        """Whether the answer is incomplete."""
        return self.verdict in (Verdict.UNKNOWN, "crash") or self.codes is None


@dataclass(frozen=True, slots=True, order=True)
class Difference:
    """A contradiction of two engines in kinds, codes, undefined, verdict, states or liveness; or the crash of one."""

    what: str
    pair: tuple[str, str]
    text: str

    @property
    def sort(self) -> tuple[str, tuple[str, str]]:
        """The property that a minimised program must keep."""
        return self.what, self.pair

    def __str__(self) -> str:
        return f"{'/'.join(self.pair)} {self.what}: {self.text}"


def run_engine(engine: str, program: Program, model: Model, timeout: float = LIMIT) -> EngineAnswer:
    """Run an engine; a crash is an answer too.

    An engine that does not list the states of programs with races is not asked for them where it has found one, nor
    where it had no time for the findings. Time is the processor's.
    """
    try:
        with processor_time():
            found = engine_findings(engine, program, model, timeout=timeout) if engine not in LISTING else None
            if found is not None and found.complete and found.races:
                return _racy(program, found)
            if found is not None and any(r.cause is Cause.TIME for r in found.reasons):
                return _late(found)
            told = ask_engine(engine, program, model, Question(findings=True), timeout)
    except McheckError as error:
        return _crash(type(error).__name__, error.message)
    except Exception as error:  # noqa: BLE001 - whatever an engine breaks with has to be seen
        return _crash(type(error).__name__, str(error))
    findings = found.findings if found else told.findings
    complete = found.complete if found else told.complete and told.verdict is not Verdict.UNKNOWN
    counted = [f for f in findings if f.severity in COUNTED]
    # A state that was reached is an answer to `exists` long before all has been looked at.
    undefined = (
        told.undefined if told.complete and told.verdict is not Verdict.UNKNOWN else any(map(makes_undefined, findings))
    )
    listed = told.complete and told.verdict is not Verdict.UNKNOWN and (engine in LISTING or not told.undefined)
    return EngineAnswer(
        verdict=told.verdict,
        undefined=undefined if complete else None,
        kinds=frozenset(f.kind for f in counted) if complete else None,
        codes=frozenset(f.code for f in counted) if complete else None,
        states=frozenset(o.state for o in told.outcomes) if listed else None,
        reason=format_reasons(without_spans(found.reasons if found and not complete else told.reasons)) or "",
        none=told.executions == 0 and complete,
    )


def _racy(program: Program, found: EngineFindings) -> EngineAnswer:
    """What follows from the findings alone; the verdict does where some execution is undefined (interface)."""
    undefined = any(map(makes_undefined, found.findings))
    verdict = "unknown" if not undefined else "pass" if program.condition.kind in ("exists", "none") else "fail"
    return EngineAnswer(
        verdict=verdict, undefined=undefined, kinds=found.kinds, codes=found.codes, states=None, reason=RACY
    )


def _late(found: EngineFindings) -> EngineAnswer:
    """No answer in time."""
    return EngineAnswer(verdict="unknown", undefined=None, kinds=None, codes=None, states=None, reason=found.reason)


def _crash(name: str, message: str) -> EngineAnswer:
    return EngineAnswer(
        verdict="crash", undefined=None, kinds=None, codes=None, states=None, reason=f"{name}: {message}"
    )


def run_engines(
    program: Program, engines: Sequence[str] = ENGINES, model: Model | None = None, timeout: float = LIMIT
) -> dict[str, EngineAnswer]:
    """Run each engine under the model of the program, or another one."""
    chosen = model or model_of(program.model or DEFAULT_MODEL)
    return {engine: run_engine(engine, program, chosen, timeout) for engine in engines}


def contradictions(heard: Mapping[str, EngineAnswer]) -> list[Difference]:
    """Find all contradictions between engines, pair by pair."""
    found = [Difference("crash", (name, name), h.reason) for name, h in heard.items() if h.verdict == "crash"]
    for (one, a), (two, b) in combinations(heard.items(), 2):
        found += [Difference(what, (one, two), text) for what, text in _contradict(a, b)]
    return found


def _contradict(a: EngineAnswer, b: EngineAnswer) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    if "crash" in (a.verdict, b.verdict):
        return found
    if Verdict.UNKNOWN not in (a.verdict, b.verdict) and a.verdict != b.verdict:
        found.append(("verdict", f"{a.verdict} against {b.verdict}"))
    if None not in (a.undefined, b.undefined) and a.undefined != b.undefined:
        found.append(("undefined", f"{a.undefined} against {b.undefined}"))
    if a.codes is not None and b.codes is not None and a.codes != b.codes:
        what = "kinds" if a.kinds != b.kinds else "codes"
        found.append((what, f"{_list(a.codes)} against {_list(b.codes)}"))
    if a.states is not None and b.states is not None and a.states != b.states:
        only = sorted(map(_state, a.states - b.states)), sorted(map(_state, b.states - a.states))
        found.append(("states", f"only here {only[0]}, only there {only[1]}"))
    return found


def _list(codes: frozenset[str]) -> str:
    return ", ".join(sorted(codes)) or "none"


def _state(state: State) -> str:
    return " ".join(f"{label}={value};" for label, value in state)


def extras(program: Program, timeout: float = LIMIT) -> list[Difference]:
    """Differences of the listing engines about the verdict asked for alone, and about waits that never end."""
    model = model_of(program.model or DEFAULT_MODEL)
    found = []
    for about in (Completeness.VERDICT, Completeness.LIVENESS):
        a, b = (ask_engine(e, program, model, Question(about=about), timeout).verdict for e in LISTING)
        if Verdict.UNKNOWN not in (a, b) and a != b:
            alone = " when asked alone" if about is Completeness.VERDICT else ""
            found.append(Difference(about.value, LISTING, f"{a} against {b}{alone}"))
    return found
