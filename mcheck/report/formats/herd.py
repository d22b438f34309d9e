"""The words of herd: a block for each test with its states and its observation, as scripts for herd's logs read them.

States are counted, not executions: those in which the formula of the condition holds, and the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mcheck.answers.final_states import truth_of
from mcheck.answers.result import State
from mcheck.base.errors import McheckError
from mcheck.base.verdicts import Verdict
from mcheck.checking.run.result import Result
from mcheck.frontend.litmus import parse
from mcheck.ir.condition import Condition

KINDS = {"exists": "Allowed", "~exists": "Forbidden", "forall": "Required"}


def document(results: Iterable[Result]) -> str:
    """The blocks of all results, as ``mcheck run --format herd`` prints them."""
    return "".join("\n".join(_block(result)) + "\n\n" for result in results)


def _block(result: Result) -> Iterator[str]:
    """The lines of a test; one that was not answered in full has no observation, and says why."""
    if result.verdict not in (Verdict.PASS, Verdict.FAIL):
        yield f"Test {result.name or result.path} {KINDS.get(result.kind, 'Allowed')}"
        yield f"(* {result.verdict}: {result.reason or 'no answer'} *)"
        return
    states = [outcome.state for outcome in result.outcomes]
    witnesses = _count_witnesses(result, states)
    yield f"Test {result.name} {KINDS.get(result.kind, 'Allowed')}"
    yield f"States {len(states)}"
    yield from (_state(state) for state in states)
    if result.undefined:
        yield "(* some execution is undefined, so anything may happen *)"
    if not result.complete:
        yield "(* the states are incomplete *)"
    yield "Ok" if result.verdict is Verdict.PASS else "No"
    if witnesses is None:
        return
    others = len(states) - witnesses
    yield "Witnesses"
    yield f"Positive: {witnesses} Negative: {others}"
    yield f"Condition {result.condition}"
    seen = "Never" if not witnesses else "Sometimes" if others else "Always"
    yield f"Observation {result.name} {seen} {witnesses} {others}"
    yield f"Time {result.name} {result.seconds:.2f}"


def _count_witnesses(result: Result, states: list[State]) -> int | None:
    """The number of states in which the formula may hold; None of a test without a condition."""
    condition = _condition(result)
    return None if condition is None else sum(True in truth_of(condition, state) for state in states)


def _condition(result: Result) -> Condition | None:
    if result.kind == "none":
        return None
    try:
        return parse(result.source, result.path).condition
    except McheckError:
        return None


def _state(state: State) -> str:
    return " ".join(f"{label}={value};" for label, value in state)
