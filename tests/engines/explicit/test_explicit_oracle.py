"""The explicit engine against brute force: the same states, the same races, the same verdicts.

``python -m tests.engines.explicit.test_explicit_oracle 1000`` tries that many programs of each kind.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.control import note

from mcheck.answers.result import NOT_UNDEFINED
from mcheck.cat import load_model
from mcheck.cat.ast import Model
from mcheck.engines.explicit.engine import answer
from mcheck.findings import catalogue
from mcheck.frontend import litmus
from tests.engines.explicit import oracle, programs
from tests.engines.explicit.models import all_models

MODELS: dict[str, Model] = all_models()

CLASSIC = ("sc", "ptx-6.0", "ptx-7.5", "ptx-9.0")


def agree(text: str, model: Model, *, limit: int = 3000) -> bool:
    """Asserts that both say the same of the program; whether there was something to compare."""
    note(text)
    program = litmus.parse(text, "random.litmus")
    try:
        truth = oracle.explore(program, model, limit=limit)
    except oracle.TooMany:
        return False
    found = answer(program, model, findings=False)
    if found.verdict == "unknown":
        assert found.reason is not None
        assert "justifies itself" in found.reason
        return False
    states = {o.state for o in found.outcomes}
    assert states == truth.states, f"too few {truth.states - states}, too many {states - truth.states}"
    assert found.complete
    races = {f.code for f in found.findings}
    wanted = truth.flags & {entry.code for entry in catalogue.all()}
    assert races == wanted
    undefined = any(catalogue.get(c).severity("ptx") == "error" for c in wanted - NOT_UNDEFINED)
    assert found.undefined is undefined
    if undefined:
        assert found.verdict == ("pass" if program.condition.kind in ("exists", "none") else "fail")
    else:
        assert found.verdict == oracle.verdict(program.condition, truth.states)
    quick = answer(program, model, findings=False, verdict_only=True)
    assert quick.verdict == found.verdict
    return True


KINDS: dict[str, tuple[st.SearchStrategy[str], tuple[str, ...]]] = {
    "generic": (programs.tables(), CLASSIC),
    "proxies": (programs.tables(proxies=True, most=5), ("ptx-7.5", "ptx-9.0")),
    "blocks": (programs.blocks(), ("sc", "ptx-6.0", "ptx-9.0")),
    "own models": (programs.tables(most=5), tuple(MODELS)),
    "mixed sizes": (programs.blocks(mixed=True, most=4), ("ptx-9.0", "sc")),
}


def trial(kind: str, model: str, examples: int) -> tuple[Callable[[], None], list[int]]:
    """A test of random programs of a kind under a model, and a counter: [tried, compared]."""
    strategy, _ = KINDS[kind]
    checked = MODELS.get(model) or load_model(model)
    count = [0, 0]

    @programs.tried(examples)
    @given(strategy)
    def run(text: str) -> None:
        count[0] += 1
        count[1] += agree(text, checked)

    return run, count


@pytest.mark.daily
@pytest.mark.parametrize(("kind", "model"), [(kind, model) for kind, (_, models) in KINDS.items() for model in models])
def test_engine_and_brute_force_agree(kind: str, model: str) -> None:
    run, count = trial(kind, model, 15)
    run()
    assert count[1] > 4  # the rest has too many executions to try


def main(examples: int, only: str = "") -> None:
    for kind, (_, models) in KINDS.items():
        for model in models:
            if only not in f"{kind} {model}":
                continue
            run, count = trial(kind, model, examples)
            started = perf_counter()
            run()
            print(
                f"{kind}, {model}: {count[0]} programs, {count[1]} compared, {perf_counter() - started:.1f} s",
                flush=True,
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000, *sys.argv[2:])
