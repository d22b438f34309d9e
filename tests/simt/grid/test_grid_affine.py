"""Kernels whose addresses are forms in the coordinates, against the accesses of every thread of the grid."""

from __future__ import annotations

from random import Random

import pytest

from tests.fuzz.affine_grids import (
    BX,
    Access,
    Form,
    Kernel,
    T,
    compare,
    constant,
    generate,
    has_race,
    plus,
    times,
    write_module,
)

SEEDS = 24


@pytest.mark.daily
@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_kernels_are_answered_as_their_accesses_say(seed: int) -> None:
    kernel = generate(Random(f"tests/{seed}"))
    outcome, _ = compare(kernel)
    assert outcome in {"apart, proved", "a race, found"}, write_module(kernel)


@pytest.mark.parametrize(("distance", "race"), [(32, False), (31, True)])
def test_lines_of_ctas_that_overlap_by_a_word_are_found(distance: int, race: bool) -> None:
    store = Access("st", "x", plus(times(BX, distance), T), 4)
    kernel = Kernel(((store,),), (5, 1), 32)
    assert has_race(kernel) is race
    assert compare(kernel)[0] == ("a race, found" if race else "apart, proved")


@pytest.mark.parametrize(("ctas", "race"), [(2, False), (3, True)])
def test_threads_that_meet_in_a_cta_that_was_not_executed_are_found(ctas: int, race: bool) -> None:
    store = Access("st", "x", plus(times(BX, 1024), Form("*", T, Form("-", constant(2), BX))), 4)
    kernel = Kernel(((store,),), (ctas, 1), 64)
    assert has_race(kernel) is race
    assert compare(kernel)[0] == ("a race, found" if race else "apart, proved")


def test_the_judge_lets_a_barrier_order_a_cta_but_not_its_neighbour() -> None:
    store = Access("st", "x", T, 4, guards=((BX, 1),))
    load = Access("ld", "x", constant(3), 4)
    assert not has_race(Kernel(((store,), (load,)), (1, 1), 32))
    assert has_race(Kernel(((store, load),), (1, 1), 32))
    assert has_race(Kernel(((store,), (load,)), (2, 1), 32))


def test_the_judge_counts_stores_of_one_warp_by_one_instruction_as_one() -> None:
    assert not has_race(Kernel(((Access("st", "x", constant(0), 4),),), (1, 1), 32))
    assert has_race(Kernel(((Access("st", "x", constant(0), 4),),), (1, 1), 64))
