"""The report of ``mcheck compare``."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from mcheck.checking.run.compare import Comparison, OneSidedState
from mcheck.report.formats.json_ import header
from mcheck.report.lines import Line
from mcheck.report.text import count, format_state
from mcheck.report.trace import format_trace

MOST = 3
"""The maximum number of states shown per test that only one model allows."""


def lines(c: Comparison, first: str, second: str, *, witness: bool, everything: bool = False) -> Iterator[Line]:
    """The lines of a difference; with ``witness`` an execution of the smallest state that only one model allows; with
    ``everything`` every such state with its execution.
    """
    yield (c.path, "bold"), ""
    if c.verdicts[0] != c.verdicts[1]:
        yield (f"    {first}: ", (c.verdicts[0], "cyan"), f"; {second}: ", (c.verdicts[1], "cyan"))
    for model, undefined, codes in zip((first, second), c.undefined, c.codes, strict=True):
        if undefined and c.undefined[0] != c.undefined[1]:
            yield (f"    some execution is undefined only under {model} ({', '.join(codes)})",)
    shown = c.alone if everything else c.alone[:MOST]
    for k, alone in enumerate(shown):
        other = second if alone.model == first else first
        yield f"    {format_state(alone.state, c.notation)}", f"  only under {alone.model}"
        if alone.axiom:
            yield (f"      {other} forbids it by {alone.axiom}: {alone.explanation}",)
        if everything or (witness and k == 0):
            for step in format_trace(alone.witness):
                yield (f"        {step}",)
    if len(shown) < len(c.alone):
        more = count(len(c.alone) - len(shown), "state", "states")
        yield (f"    and {more} more that only one model allows (-v shows all)",)


def describe_uncompared(found: list[Comparison]) -> Iterator[Line]:
    """The tests that could not be compared, counted by reason."""
    for reason, tests in Counter(c.silent for c in found if c.silent).items():
        yield (f"{count(tests, 'test', 'tests')} not compared: {reason}",)


def describe_counts(found: list[Comparison], first: str, second: str) -> Line:
    """The line with the counts."""
    differ = sum(c.differs for c in found)
    unknown = sum(bool(c.unknown) and not c.differs for c in found)
    broken = sum(bool(c.problem) for c in found)
    more = (f", {unknown} unknown" if unknown else "") + (f", {count(broken, 'error', 'errors')}" if broken else "")
    verb = "differs" if differ == 1 else "differ"
    compared = sum(not c.silent for c in found)
    return (f"{count(compared, 'test', 'tests')} under {first} and {second}: {differ} {verb}{more}",)


def document(first: str, second: str, found: list[Comparison]) -> str:
    """The comparison as JSON: every test, those that differ first."""
    tests = [_test(c) for c in found]
    whole = header(models=[first, second], tests=tests, differ=sum(c.differs for c in found))
    return json.dumps(whole, indent=1) + "\n"


def _test(c: Comparison) -> dict[str, Any]:
    return {
        "path": c.path,
        "name": c.name,
        "differs": c.differs,
        "verdicts": list(c.verdicts),
        "undefined": list(c.undefined),
        "alone": [_alone(a) for a in c.alone],
        "reason": c.problem or c.silent or c.unknown or None,
    }


def _alone(a: OneSidedState) -> dict[str, Any]:
    return {
        "model": a.model,
        "state": dict(a.state),
        "witness": list(format_trace(a.witness)),
        "forbidden_by": a.axiom or None,
        "cycle": list(a.cycle),
        "explanation": a.explanation or None,
    }
