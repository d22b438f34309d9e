"""Comparison of the answers of several engines to one question."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcheck.base.errors import InternalError
from mcheck.base.reasons import Cause, Reason, Reasons, format_reasons, unique_reasons
from mcheck.base.records import replace
from mcheck.base.verdicts import Verdict
from mcheck.checking.policy.question import Completeness, Question

if TYPE_CHECKING:
    from mcheck.answers.result import Answer, State
    from mcheck.findings.finding import Finding

COUNTED = ("error", "review")
DISAGREE = "the engines disagree"


def counted_kinds(findings: tuple[Finding, ...]) -> frozenset[str]:
    """The kinds of the findings that a comparison counts."""
    return frozenset(f.kind for f in findings if f.severity in COUNTED)


def agree_on_findings(given: list[Answer]) -> Answer:
    """The common answer about findings; raises ``InternalError`` if the engines differ.

    They differ if one reports a kind (for review or worse) that another lacks. If only one has a complete answer, a
    reason says so.
    """
    full = [a for a in given if a.covered]
    if len(full) < 2:
        best = next(iter(full), None) or next((a for a in given if a.verdict is not Verdict.UNKNOWN), given[0])
        others = "; ".join(f"{a.engine}: {format_reasons(a.reasons)}" for a in given if a is not best)
        note = f"only the {best.engine} engine has a complete answer ({others})"
        return replace(best, assumptions=(*best.assumptions, note))
    first, *rest = full
    for other in rest:
        ours, theirs = (counted_kinds(a.findings) for a in (first, other))
        if ours != theirs:
            names = [", ".join(sorted(kinds)) or "nothing" for kinds in (ours, theirs)]
            raise InternalError(f"{DISAGREE}: {first.engine} finds {names[0]}, {other.engine} finds {names[1]}")
    return replace(first, engine=_names(full))


def agree_on_states(explicit: Answer, z3: Answer, question: Question) -> Answer:
    """The common answer of the explicit engine and the z3 engine; if only one has an answer, a reason says so."""
    different = differences(explicit, z3, question)
    if different:
        raise InternalError("the engines differ: " + "; ".join(different))
    unknown = [a.verdict is Verdict.UNKNOWN for a in (explicit, z3)]
    if unknown == [True, False]:
        return replace(z3, reasons=_alone(z3, explicit))
    if unknown == [False, True]:
        return replace(explicit, reasons=_alone(explicit, z3))
    return replace(explicit, engine=_names([explicit, z3]))


def agree_with_protocol(given: Answer, protocol_answer: Answer, question: Question) -> Answer:
    """The common answer of the enumerating engines, compared with the protocol engine's if that has all states."""
    if not protocol_answer.complete:
        return given
    if given.verdict is Verdict.UNKNOWN:
        return replace(protocol_answer, reasons=_alone(protocol_answer, given))
    # What is found depends on where an engine stops, as states do.
    same = replace(protocol_answer, findings=given.findings)
    if given.undefined and protocol_answer.undefined:
        same = replace(same, outcomes=given.outcomes)
    different = differences(replace(given, engine="explicit"), same, question)
    if different:
        raise InternalError("the engines differ: " + "; ".join(different))
    return replace(given, engine=_names([given, protocol_answer]))


def differences(one: Answer, other: Answer, question: Question | None = None) -> list[str]:
    """The contradictions between two answers, as text; an unknown verdict contradicts nothing."""
    about = Completeness.STATES if question is None else question.about
    first, second = one.engine, other.engine
    out = []
    if Verdict.UNKNOWN not in (one.verdict, other.verdict) and one.verdict is not other.verdict:
        out.append(f"{first} says {_verdict(one)}, {second} says {_verdict(other)}")
    if about is not Completeness.STATES or not (one.complete and other.complete):
        return out
    if one.undefined != other.undefined:
        out.append(f"only {first if one.undefined else second} finds an undefined execution")
    ours, theirs = ({o.state for o in a.outcomes} for a in (one, other))
    out += [f"only {first} reaches {_state(s)}" for s in sorted(ours - theirs, key=str)]
    out += [f"only {second} reaches {_state(s)}" for s in sorted(theirs - ours, key=str)]
    found, given = _findings(one), _findings(other)
    out += [f"only {first} reports {f}" for f in sorted(found - given)]
    out += [f"only {second} reports {f}" for f in sorted(given - found)]
    return out


def _alone(given: Answer, silent: Answer) -> Reasons:
    why = silent.reasons or (Reason(Cause.LEFT_OUT),)
    said = f"only {given.engine} has an answer; {silent.engine}"
    return unique_reasons(given.reasons, (Reason(Cause.ONE_ENGINE, said, because=why),))


def _names(given: list[Answer]) -> str:
    *names, last = (name for a in given for name in a.engine.split(" and "))
    return f"{', '.join(names)} and {last}"


def _verdict(a: Answer) -> str:
    why = format_reasons(a.reasons)
    return f"{a.verdict} ({why})" if why else a.verdict


def _state(state: State) -> str:
    return " ".join(f"{label}={value};" for label, value in state)


def _findings(a: Answer) -> set[str]:
    return {
        f"{f.code} at {', '.join(f'{x.span.line}:{x.span.column}' if x.span else '?' for x in f.accesses)}"
        for f in a.findings
    }
