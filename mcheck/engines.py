"""The engines by name: one of them, the one that suits a program's size, or several that must agree."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mcheck.errors import InternalError
from mcheck.explore.result import Answer, State

if TYPE_CHECKING:
    from mcheck.cat.ast import Model
    from mcheck.program.program import Program


def answer(
    program: Program,
    model: Model,
    *,
    engine: str = "auto",
    prop: str = "spec",
    verdict_only: bool = False,
    unroll: int = 2,
    timeout: float | None = None,
    profile: str = "ptx",
    findings: bool | None = None,
    witnesses: bool = False,
) -> Answer:
    """The answer of the engine of this name; ``Answer.engine`` says which one ``auto`` chose.

    ``auto`` takes the protocol engine for a sketch without a condition that is larger than a litmus test, or too wide
    for the others. ``both`` raises ``InternalError`` with both answers where the engines differ.
    """
    if engine == "protocol":
        return by_protocol(program, model, prop=prop, unroll=unroll, timeout=timeout, profile=profile)
    sketch = engine == "auto" and prop == "spec" and program.condition.kind == "none"
    if sketch and sum(len(t.code) for t in program.threads) > LITMUS_SIZE:
        given = by_protocol(program, model, prop=prop, unroll=unroll, timeout=timeout, profile=profile)
        if given.verdict != "unknown":
            return given
    if engine == "auto":
        from mcheck.solve.size import choose

        engine = choose(program, verdict_only=verdict_only and prop == "spec")

    def ask(name: str) -> Answer:
        if name == "z3":
            from mcheck.solve.engine import answer as chosen
        else:
            from mcheck.explore.engine import answer as chosen
        return chosen(
            program,
            model,
            prop=prop,
            verdict_only=verdict_only,
            unroll=unroll,
            timeout=timeout,
            profile=profile,
            findings=findings,
            witnesses=witnesses,
        )

    if engine != "both":
        given = ask(engine)
        if sketch and given.verdict == "unknown":
            other = by_protocol(program, model, prop=prop, unroll=unroll, timeout=timeout, profile=profile)
            return given if other.verdict == "unknown" else other
        return given
    return _agreed(ask("explicit"), ask("z3"), prop, verdict_only=verdict_only)


def by_protocol(
    program: Program, model: Model, *, prop: str, unroll: int, timeout: float | None, profile: str
) -> Answer:
    """The protocol engine's findings as an answer: it looks for races, undefined behaviour and deadlocks, not for
    states.

    A sketch without a condition passes once it has been looked at; a condition is ``unknown`` to it unless some
    execution is undefined, which settles it. Liveness fails with the first deadlock.
    """
    from mcheck.explore.run import NOT_UNDEFINED
    from mcheck.protocol.engine import check

    given = check(program, model, unroll=unroll, timeout=timeout, profile=profile)
    undefined = any(
        f.severity == "error" and f.code not in NOT_UNDEFINED and f.kind != "deadlock" for f in given.findings
    )
    kind = program.condition.kind
    reason = given.reason if given.verdict in ("unknown", "bounded") else None
    if prop == "liveness":
        stuck = any(f.kind == "deadlock" for f in given.findings)
        verdict = "fail" if stuck else "pass" if given.verdict in ("proved", "finding") else "unknown"
    elif kind == "none":
        verdict = "unknown" if given.verdict in ("unknown", "bounded") else "pass"
    elif undefined:
        verdict, reason = "pass" if kind == "exists" else "fail", "some execution is undefined, so anything may happen"
    else:
        verdict, reason = "unknown", reason or "the protocol engine does not list final states"
    return Answer(
        verdict=verdict,
        complete=False,
        undefined=undefined,
        findings=given.findings,
        executions=given.executions,
        engine="protocol",
        reason=reason,
    )


LITMUS_SIZE = 40
"""Operations of all threads together, up to which ``auto`` asks an engine that looks at every execution first."""


def _agreed(explicit: Answer, z3: Answer, prop: str, *, verdict_only: bool) -> Answer:
    """The common answer of two engines; where only one has one, it is said."""
    different = differences(explicit, z3, prop, verdict_only=verdict_only)
    if different:
        raise InternalError("the engines differ: " + "; ".join(different))
    if explicit.verdict == "unknown" and z3.verdict != "unknown":
        return replace(z3, reason=_alone("z3", z3, "explicit", explicit))
    if z3.verdict == "unknown" and explicit.verdict != "unknown":
        return replace(explicit, reason=_alone("explicit", explicit, "z3", z3))
    return replace(explicit, engine="explicit and z3")


def _alone(name: str, given: Answer, other: str, silent: Answer) -> str:
    parts = [given.reason, f"only {name} has an answer; {other}: {silent.reason or 'unknown'}"]
    return "; ".join(p for p in parts if p)


def differences(explicit: Answer, z3: Answer, prop: str = "spec", *, verdict_only: bool = False) -> list[str]:
    """In what two answers contradict each other, in words; an unknown verdict contradicts nothing."""
    out = []
    if "unknown" not in (explicit.verdict, z3.verdict) and explicit.verdict != z3.verdict:
        out.append(f"explicit says {_verdict(explicit)}, z3 says {_verdict(z3)}")
    if verdict_only or prop != "spec" or not (explicit.complete and z3.complete):
        return out
    ours, theirs = ({o.state for o in a.outcomes} for a in (explicit, z3))
    out += [f"only explicit reaches {_state(s)}" for s in sorted(ours - theirs, key=str)]
    out += [f"only z3 reaches {_state(s)}" for s in sorted(theirs - ours, key=str)]
    if explicit.undefined != z3.undefined:
        out.append(f"only {'explicit' if explicit.undefined else 'z3'} finds an undefined execution")
    found, given = _findings(explicit), _findings(z3)
    out += [f"only explicit reports {f}" for f in sorted(found - given)]
    out += [f"only z3 reports {f}" for f in sorted(given - found)]
    return out


def _verdict(a: Answer) -> str:
    return f"{a.verdict} ({a.reason})" if a.reason else a.verdict


def _state(state: State) -> str:
    return " ".join(f"{label}={value};" for label, value in state)


def _findings(a: Answer) -> set[str]:
    return {
        f"{f.code} at {', '.join(f'{x.span.line}:{x.span.column}' if x.span else '?' for x in f.accesses)}"
        for f in a.findings
    }
