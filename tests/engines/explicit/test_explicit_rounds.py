"""The ways to fill the rounds of a barrier: few are found at once, too many are refused at once."""

from __future__ import annotations

import pytest

from mcheck.base.errors import Unsupported
from mcheck.events.choices.barrier_rounds import Arrival, LaneExits, Units, fill_rounds
from mcheck.events.choices.candidate import Option
from mcheck.events.event import BarrierStep


def unit(warp: int, kinds: str, count: int) -> list[Arrival]:
    """The arrivals of a warp, ``a`` for one that does not wait and ``s`` for one that does."""
    step = BarrierStep(("bar", 0), "sync", count)
    return [
        Arrival(step, (warp, n), (100 * warp + n,), (100 * warp + n + 50,) if kind == "s" else (), standing=False)
        for n, kind in enumerate(kinds)
    ]


def filled(units: Units) -> list[Option]:
    """The ways to fill the rounds of warps that all exit at last."""
    return fill_rounds(units, LaneExits(tuple((-1 - u,) for u in range(len(units))), ()))


def test_two_of_three_warps() -> None:
    """One waits, so one of the two others is in its round."""
    assert len(filled([unit(0, "s", 64), unit(1, "a", 64), unit(2, "a", 64)])) == 2


def test_one_warp_alone_fills_a_round() -> None:
    """Its second arrival counts as well (Q22)."""
    assert len(filled([unit(0, "aa", 64)])) == 1


def test_all_warps_of_a_cta_wait_twice() -> None:
    """Nothing is to be chosen, however many there are."""
    assert len(filled([unit(w, "ss", 1024) for w in range(32)])) == 1


@pytest.mark.daily
@pytest.mark.parametrize(("warps", "count"), [(32, 1024), (31, 512), (40, 32)])
def test_too_many_ways_are_refused(warps: int, count: int) -> None:
    """Without asking 3^32 of them."""
    with pytest.raises(Unsupported, match="too many ways"):
        filled([unit(w, "aas", count) for w in range(warps)])


def test_without_a_count_who_has_left_is_not_waited_for() -> None:
    """The second warp meets the first once, and is alone from there; its last round comes behind the other's exit."""
    (option,) = filled([unit(0, "s", 64), [*unit(1, "s", 64), *unit(1, "s", 0)]])
    assert dict(option.edges)["exited"] == ((-1, 150),)


def test_without_a_count_who_stays_is_waited_for() -> None:
    """A warp that never comes and never exits."""
    assert fill_rounds([[*unit(0, "s", 32), *unit(0, "s", 0)]], LaneExits(((-1,),), None)) == []
