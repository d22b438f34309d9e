"""Bounds of forms in the coordinates, against their values in every cluster."""

from __future__ import annotations

from random import Random

import pytest

from mcheck.simt.grid.footprints.space import AXES, Space, dot


def random_space(rng: Random) -> Space:
    """A small grid with a few quotients, of quotients, too."""
    counts = (rng.randint(1, 12), rng.randint(1, 3), 1)
    first = tuple(rng.randrange(n) for n in counts)
    low, high = tuple(-b for b in first), tuple(n - 1 - b for n, b in zip(counts, first, strict=True))
    space = Space(low, high, first)
    for _ in range(rng.randint(1, 4)):
        known = AXES + len(space.quotients)
        divisor = rng.randint(2, 9)
        slopes = [rng.choice((0, 0, 1, 1, 2, -1, 4, -divisor)) for _ in range(known)]
        space.quotient(rng.randrange(divisor), slopes, divisor)
    return space


def random_form(rng: Random, space: Space) -> list[int]:
    """A form that mostly has remainders in it."""
    form = [rng.choice((0, 0, 0, 1, -3)) for _ in range(AXES + len(space.quotients))]
    for number, q in enumerate(space.quotients):
        if rng.random() < 0.6:
            times = rng.choice((1, 2, -1, 128))
            for k, slope in enumerate(q.slopes):
                form[k] += times * slope
            form[AXES + number] -= times * q.divisor
    return form


@pytest.mark.parametrize("seed", range(150))
def test_bounds_hold_in_every_cluster(seed: int) -> None:
    rng = Random(seed)
    space = random_space(rng)
    for _ in range(6):
        form = random_form(rng, space)
        values = [dot(form, space.symbols(cluster)) for cluster in space.all_clusters()]
        low, high = space.bound_form(form)
        assert low <= min(values)
        assert max(values) <= high


@pytest.mark.parametrize("seed", range(150))
def test_what_is_still_is_zero_in_every_cluster_of_the_class(seed: int) -> None:
    rng = Random(1000 + seed)
    space = random_space(rng)
    form = random_form(rng, space)
    for sign in (1, -1):
        if rng.random() < 0.7:
            space.require([sign * x for x in form], rng.randint(0, 6), None)
    if any(form) and space.is_still(form):
        assert all(dot(form, space.symbols(c)) == 0 for c in space.all_clusters() if space.contains(c))


def test_a_remainder_stays_below_its_divisor() -> None:
    space = Space((-2, 0, 0), (997, 0, 0), (2, 0, 0))
    number = space.quotient(2, [1], 4)
    assert number == AXES
    assert space.bound_form([3, 0, 0, -12]) == (-6, 3)


def test_the_last_group_has_one_size() -> None:
    space = Space((-96, 0, 0), (3, 0, 0), (96, 0, 0))
    space.quotient(0, [1], 8)
    assert not space.is_still([0, 0, 0, -8])
    space.require([0, 0, 0, -8], 4, None)
    assert space.is_still([0, 0, 0, -8])
