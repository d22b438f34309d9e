"""Some mutated inputs in every run; ``python -m benchmarks.abuse`` has 30,000, and goes on where it was interrupted."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

abuse = pytest.importorskip("benchmarks.abuse", reason="the checkout's root is not where Python looks for modules")
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the commands are forked")


@pytest.mark.daily(least=0)
@pytest.mark.parametrize("first", range(0, 40, 5))
def test_mutated_inputs_end_as_they_should(first: int) -> None:
    tally = abuse.Tally(7, next=first)
    abuse.run(tally, first + 5)
    assert tally.failures == []


def test_the_inputs_are_of_all_kinds() -> None:
    make = abuse.Maker(7)
    assert {"statements", "meaning", "bytes", "modules", "models"} <= {make(number).kind for number in range(40)}


@pytest.mark.daily
@pytest.mark.parametrize("kind", ["alphabet", "array", "cache", "pipe", "table"])
def test_inputs_of_each_kind(kind: str, tmp_path: Path) -> None:
    make = abuse.Maker(7)
    for number in range(2 if kind == "pipe" else 8):
        given = getattr(make, f"_{kind}")(random.Random(number))
        folder = tmp_path / str(number)
        folder.mkdir()
        assert abuse.complaint(given, *abuse.attempt(given, folder)) is None, given.arguments


def test_a_run_goes_on_where_the_last_one_ended(tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    first = abuse.load(state, 7)
    first.next = 5
    first.failures.append((3, "mcheck run: 9 s"))
    abuse.store(first, state)
    assert abuse.load(state, 7) == first
    make = abuse.Maker(7)
    assert [make(5), make(6)] == [make(5), make(6)]
    with pytest.raises(SystemExit):
        abuse.load(state, 8)


@pytest.mark.parametrize(
    ("status", "seconds", "said", "wrong"),
    [
        (0, 1.0, "ok", None),
        (2, 1.0, "error: it is wrong", None),
        (70, 1.0, "internal error: KeyError", "status 70"),
        (1, 1.0, "Traceback (most recent call last):", "status 1"),
        (-9, 1.0, "", "status -9"),
        (2, 1.0, "", "status 2 without a word"),
        (3, 4.5, "unknown", "4.5 s"),
    ],
)
def test_what_counts_as_a_failure(status: int, seconds: float, said: str, wrong: str | None) -> None:
    given = abuse.Input("bytes", ("run", "a.litmus"), {})
    found = abuse.complaint(given, status, seconds, said)
    assert (found or "").startswith(wrong or "")
    assert bool(found) is bool(wrong)
