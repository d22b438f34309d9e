"""Strided ranges that are repeated and joined have the bytes that they had."""

from __future__ import annotations

from random import Random

from mcheck.simt.grid.footprints.footprint import ANY, READ, SOMEWHERE, Footprint, Form
from mcheck.simt.grid.footprints.regions import Range, Region, join_ranges, repeat_range
from mcheck.simt.grid.footprints.space import Space


def bytes_of(items: list[Range]) -> set[int]:
    out: set[int] = set()
    for low, length, steps in items:
        starts = {low}
        for stride, count in steps:
            starts = {at + stride * k for at in starts for k in range(count)}
        out |= {at + k for at in starts for k in range(length)}
    return out


def random_range(random: Random) -> Range:
    steps = tuple((random.choice((2, 4, 5, 8, 16, 24)), random.randint(1, 4)) for _ in range(random.randint(0, 2)))
    return random.randrange(0, 64, 2), random.choice((2, 4)), steps


def test_joined_ranges_have_the_same_bytes() -> None:
    random = Random(1)
    for _ in range(1000):
        items = [
            repeat_range(random_range(random), random.choice((0, 4, -4, 8, 16, -32, 64)), random.randint(1, 5))
            for _ in range(random.randint(1, 5))
        ]
        joined = join_ranges(items)
        assert bytes_of(joined) == bytes_of(items)
        assert len(joined) <= len(items)


def test_a_repeated_range_is_its_copies() -> None:
    random = Random(2)
    for _ in range(500):
        given, stride, count = random_range(random), random.choice((-40, -4, 0, 4, 12)), random.randint(1, 4)
        low, length, steps = given
        copies = [(low + stride * k, length, steps) for k in range(count)]
        assert bytes_of([repeat_range(given, stride, count)]) == bytes_of(copies)


def test_rounds_adjoin_those_before_them() -> None:
    first, rest = (0, 1024, ((4096, 11),)), repeat_range((11 * 4096, 1024, ((4096, 4),)), 4 * 4096, 100)
    assert join_ranges([first, rest]) == [(0, 1024, ((4096, 411),))]
    assert join_ranges([(0, 176, ((4096, 32),)), repeat_range((176, 16, ((4096, 32),)), 16, 9)]) == [
        (0, 320, ((4096, 32),))
    ]


def test_an_access_that_may_touch_all_of_its_buffer_has_one_region_without_dimensions() -> None:
    form = Form(buffer=ANY, kind=READ, whole=True)
    footprint = Footprint(Space(low=(0,), high=(3,), first=(0,)))
    footprint.add(form, None, SOMEWHERE)
    footprint.add(form, None, SOMEWHERE)
    assert footprint.regions(form) == (Region(()),)
