"""Grids without fences: clusters that race, and clusters of which only one makes an access, as it draws a number."""

from __future__ import annotations

import random

import pytest

from tests.fuzz.unfenced_grids import Program, answer, generate, is_wrong, judge_long

DRAW, STORE = ("draw", "add", 0, 0, "gpu"), ("store", 1, "weak")


@pytest.mark.parametrize(
    "body",
    [
        (DRAW, ("if", 0, 0, (STORE,))),
        (("draw", "exch", 0, 0, "gpu"), ("if", 0, 0, (STORE,))),
        (DRAW, ("slot", 0)),
        (DRAW, ("hand", 0), ("if", 1, 0, (STORE,))),
        (DRAW, ("if", 0, 0, (("store", 1, "relaxed.cta"),))),
    ],
)
def test_what_only_one_cluster_draws_is_no_race(body: tuple[tuple[object, ...], ...]) -> None:
    program = Program(3, body)
    assert (answer(program), judge_long(program)) == ("proved", "fine")


@pytest.mark.parametrize(
    "body",
    [
        (DRAW, STORE),
        (DRAW, ("if", 1, 0, (STORE,))),
        (("draw", "max", 0, 0, "gpu"), ("if", 0, 1, (STORE,))),
        (("draw", "add", 0, 0, "cta"), ("if", 0, 0, (STORE,))),
        (DRAW, ("own",), ("slot", 0)),
    ],
)
def test_what_several_clusters_do_is(body: tuple[tuple[object, ...], ...]) -> None:
    program = Program(3, body)
    assert (answer(program), judge_long(program)) == ("RACE001", "race")


@pytest.mark.daily(days=4)
def test_random_grids_without_fences_are_judged_by_their_orders() -> None:
    rng = random.Random(3)
    for _ in range(30):
        program = generate(rng)
        assert not is_wrong(answer(program), judge_long(program)), program
