"""The engines by name: one of them, the one that suits a program's size, or several that must agree."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from mcheck.errors import InternalError
from mcheck.explore.final import terms_of
from mcheck.explore.result import Answer, State
from mcheck.limit import NO_TIME, timed_out
from mcheck.program.ops import Alu, Fence, Load, Store
from mcheck.solve.size import choose

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

    ``auto`` asks the protocol engine first about what is larger than a litmus test, and last about what is too wide for
    the others. ``both`` raises ``InternalError`` with the answers where engines differ.
    """
    end = None if timeout is None else time.monotonic() + timeout

    def ask(name: str, most: float | None = None) -> Answer:
        limits = [x for x in (most, None if end is None else max(end - time.monotonic(), 0.0)) if x is not None]
        within = min(limits, default=None)
        if name == "protocol":
            return by_protocol(
                program, model, prop=prop, unroll=unroll, timeout=within, profile=profile, witnesses=witnesses
            )
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
            timeout=within,
            profile=profile,
            findings=findings,
            witnesses=witnesses,
        )

    if engine == "both":
        given = _agreed(ask("explicit"), ask("z3"), prop, verdict_only=verdict_only)
        return _with_protocol(given, ask("protocol"), prop) if prop == "spec" and _has_states(program) else given
    if engine != "auto" or prop != "spec":
        return ask(engine if engine != "auto" else choose(program, verdict_only=False))
    small = sum(len(t.code) for t in program.threads) <= LITMUS_SIZE or _is_classic(program)
    lister = choose(program, verdict_only=verdict_only)
    short = FIRST if timeout is None else min(FIRST, timeout / 3)
    answers: list[tuple[str, Answer]] = []
    # A short attempt each, then whoever has not finished has what is left of the time.
    for name in (lister, "protocol", "protocol", lister) if small else ("protocol", lister, "protocol", lister):
        again = [a for n, a in answers if n == name]
        if again and not timed_out(again[-1].reason):
            continue
        given = ask(name, None if again else short)
        if settles(given, program, verdict_only=verdict_only):
            return given
        answers.append((name, given))
    known = [a for _, a in answers if a.verdict != "unknown"]
    if known:
        return known[-1]
    reasons = dict.fromkeys(a.reason for _, a in answers if a.reason and not timed_out(a.reason))
    best = max((a for _, a in answers), key=lambda a: (len(a.findings), len(a.outcomes)))
    return replace(best, reason="; ".join(reasons) or f"{NO_TIME} {timeout:g} s")


FIRST = 4.0
"""Seconds of an engine's first attempt where another one may be quicker."""


def settles(given: Answer, program: Program, *, verdict_only: bool) -> bool:
    """Whether nothing is left to ask: a verdict, and all states where states are asked for."""
    if given.verdict == "unknown":
        return False
    return given.complete or given.undefined or verdict_only or not _has_states(program)


def _is_classic(program: Program) -> bool:
    """Whether threads in warps of their own load, store and fence, and nothing else: a test for the listing engines."""
    warps = {t.place.own_warp for t in program.threads}
    plain = all(isinstance(op, Load | Store | Fence | Alu) for t in program.threads for op in t.code)
    return plain and len(warps) == len(program.threads)


def _has_states(program: Program) -> bool:
    return bool(terms_of(program.condition))


def by_protocol(
    program: Program,
    model: Model,
    *,
    prop: str,
    unroll: int,
    timeout: float | None,
    profile: str,
    witnesses: bool = False,
) -> Answer:
    """The protocol engine's answer: findings, and the final states of what a condition names where they can be told.

    A sketch without a condition passes once it has been looked at. Liveness fails with the first deadlock.
    """
    from mcheck.protocol import states
    from mcheck.protocol.engine import check

    if prop != "liveness" and _has_states(program):
        return states.answer(program, model, unroll=unroll, timeout=timeout, profile=profile, witnesses=witnesses)
    given = check(program, model, unroll=unroll, timeout=timeout, profile=profile)
    if prop == "liveness":
        stuck = any(f.kind == "deadlock" for f in given.findings)
        verdict = "fail" if stuck else "pass" if given.verdict in ("proved", "finding") else "unknown"
    else:
        verdict = "unknown" if given.verdict in ("unknown", "bounded") else "pass"
    return Answer(
        verdict=verdict,
        complete=False,
        undefined=any(states.voids(f) for f in given.findings),
        findings=given.findings,
        executions=given.executions,
        engine="protocol",
        reason=given.reason if given.verdict in ("unknown", "bounded") else None,
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


def _with_protocol(given: Answer, protocol: Answer, prop: str) -> Answer:
    """The common answer of the enumerating engines, held against the protocol engine's where that lists all states."""
    if not protocol.complete:
        return given
    if given.verdict == "unknown":
        return replace(protocol, reason=_alone("protocol", protocol, "explicit and z3", given))
    same = replace(protocol, findings=given.findings)  # what is found depends on where an engine stops, as states do
    if given.undefined and protocol.undefined:
        same = replace(same, outcomes=given.outcomes)
    different = differences(given, same, prop, names=("explicit", "protocol"))
    if different:
        raise InternalError("the engines differ: " + "; ".join(different))
    return replace(given, engine=f"{given.engine} and protocol".replace(" and z3 and", ", z3 and"))


def _alone(name: str, given: Answer, other: str, silent: Answer) -> str:
    parts = [given.reason, f"only {name} has an answer; {other}: {silent.reason or 'unknown'}"]
    return "; ".join(p for p in parts if p)


def differences(
    one: Answer,
    other: Answer,
    prop: str = "spec",
    *,
    verdict_only: bool = False,
    names: tuple[str, str] = ("explicit", "z3"),
) -> list[str]:
    """In what two answers contradict each other, in words; an unknown verdict contradicts nothing."""
    first, second = names
    out = []
    if "unknown" not in (one.verdict, other.verdict) and one.verdict != other.verdict:
        out.append(f"{first} says {_verdict(one)}, {second} says {_verdict(other)}")
    if verdict_only or prop != "spec" or not (one.complete and other.complete):
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


def _verdict(a: Answer) -> str:
    return f"{a.verdict} ({a.reason})" if a.reason else a.verdict


def _state(state: State) -> str:
    return " ".join(f"{label}={value};" for label, value in state)


def _findings(a: Answer) -> set[str]:
    return {
        f"{f.code} at {', '.join(f'{x.span.line}:{x.span.column}' if x.span else '?' for x in f.accesses)}"
        for f in a.findings
    }
