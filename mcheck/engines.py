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

    ``both`` raises ``InternalError`` with both answers where the engines differ.
    """
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
        return ask(engine)
    return _agreed(ask("explicit"), ask("z3"), prop, verdict_only=verdict_only)


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
