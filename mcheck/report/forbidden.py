"""The reports of ``mcheck outcomes --forbidden``: forbidden states, each with the axiom and the cycle of edges."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from mcheck.answers.exploration import Forbidden
from mcheck.ir.condition import Notation
from mcheck.report.formats.json_ import header
from mcheck.report.lines import Line
from mcheck.report.text import count, format_state


def lines(
    name: str,
    model: str,
    states: Sequence[Forbidden],
    *,
    notation: tuple[tuple[str, Notation], ...],
    complete: bool,
) -> Iterator[Line]:
    """The lines of the text report."""
    what = count(len(states), "forbidden state", "forbidden states")
    yield (name, "bold"), f" under {model}: {what}{'' if complete else ', possibly more'}"
    for found in states:
        yield ()
        yield (format_state(found.state, notation), "cyan"), f"  forbidden by {found.axiom}"
        if found.explanation:
            yield (f"    {found.explanation}",)


def document(path: str, model: str, states: Sequence[Forbidden], *, complete: bool) -> str:
    """The JSON document."""
    found = [
        {
            "state": dict(f.state),
            "forbidden_by": f.axiom,
            "cycle": list(f.cycle_steps),
            "explanation": f.explanation or None,
        }
        for f in states
    ]
    return json.dumps(header(path=path, model=model, forbidden=found, complete=complete), indent=1) + "\n"
