"""What an engine would have to say of what interleavings show. What it leaves open is not judged."""

from __future__ import annotations

from mcheck.ir.program import Program
from tests.fuzz.differential import EngineAnswer
from tests.interleavings.search import Final, Found, Trace

UNORDERED = "UB201"
"""Where nothing orders an operation after the initialisation, an engine need not look at what follows it."""
MILD = {"UB212", "UB501"}
"""Beside what is undefined for certain, these say nothing more."""


def contradictions(program: Program, found: Found, heard: EngineAnswer) -> list[str]:
    """What the interleavings show and the engine, which has answered, does not tell.

    The first word is the sort: ``misuse``, ``race``, ``deadlock``, ``state``, ``verdict``, ``crash:``; ``beside:`` is a
    misuse that is not told beside another.
    """
    wrong: list[str] = []
    if heard.verdict == "crash":
        return [f"crash: {heard.reason}"]
    if heard.codes is not None:
        wrong += _findings(found, heard.codes)
    kind = program.condition.kind
    refuted = {"exists": (True, "fail"), "~exists": (True, "pass"), "forall": (False, "pass")}.get(kind)
    if refuted and refuted[0] in found.holds and heard.verdict == refuted[1]:
        wrong.append(f"verdict {heard.verdict}: {_told(found.holds[refuted[0]])}")
    if heard.states is not None and heard.undefined is False:
        known = [dict(state) for state in heard.states]
        for final, trace in found.finals.items():
            if not any(_agree(final, state) for state in known):
                wrong.append(f"state {_shown(final)}: {_told(trace)}")
    return wrong


def _findings(found: Found, codes: frozenset[str]) -> list[str]:
    wrong = []
    named = f"told: {', '.join(sorted(codes)) or 'nothing'}"
    for misuse, trace in found.misuses.items():
        mild = bool(misuse & MILD) and any(code.startswith("UB") for code in codes)
        if not misuse & codes and UNORDERED not in codes and not mild:
            sort = "beside:" if any(code.startswith("UB") for code in codes) else "misuse"
            wrong.append(f"{sort} {' or '.join(sorted(misuse))} ({named}): {_told(trace)}")
    if found.races and UNORDERED not in codes and not any(code.startswith("RACE") or code == "UB106" for code in codes):
        pair, trace = next(iter(found.races.items()))
        wrong.append(f"race of {pair[0]} and {pair[1]} ({named}): {_told(trace)}")
    if found.dead is not None and UNORDERED not in codes and not any(code.startswith("DEAD") for code in codes):
        wrong.append(f"deadlock ({named}): {_told(found.dead)}")
    return wrong


def _agree(final: Final, state: dict[str, object]) -> bool:
    """Whether a state of an engine is this one; what either does not know is any value."""
    for label, value in final:
        other = state.get(label)
        if isinstance(value, int) and isinstance(other, int) and (value - other) % (1 << 32):
            return False
    return True


def _shown(final: Final) -> str:
    return " ".join(f"{label}={'?' if value is None else value};" for label, value in final)


def _told(trace: Trace) -> str:
    return " | ".join(trace) or "at the start"
