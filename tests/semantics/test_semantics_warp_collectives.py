"""What lanes that meet get: the examples and the corners of the sections."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcheck.semantics.warp_collectives import FULL, elect, match_lanes, redux, result, shuffle, vote

WARP = {lane: 100 + lane for lane in range(32)}
LANES = st.dictionaries(st.integers(0, 31), st.integers(0, FULL), min_size=1)


@pytest.mark.parametrize(
    ("mode", "lane", "b", "c", "source"),
    [
        ("up", 5, 1, 0, 4),
        ("up", 0, 1, 0, None),
        ("down", 5, 2, 31, 7),
        ("down", 31, 1, 31, None),
        ("bfly", 5, 16, 31, 21),
        ("idx", 5, 9, 31, 9),
        ("idx", 21, 3, 0x101F, 19),  # segments of 16
        ("down", 15, 1, 0x101F, None),
        ("up", 16, 1, 0x1000, None),
        ("bfly", 3, 2, 0x1C1F, 1),
    ],
)
def test_shuffles_of_a_whole_warp(mode: str, lane: int, b: int, c: int, source: int | None) -> None:
    """Out of range a lane keeps its own value, and the predicate says so (9.7.9.6)."""
    assert shuffle(mode, lane, WARP, b, c) == (100 + (lane if source is None else source), int(source is not None))


def test_what_an_absent_lane_gives_is_open() -> None:
    assert shuffle("idx", 0, {0: 1, 1: 2}, 7, 31) == (None, 1)


@given(LANES)
def test_votes_agree(brought: dict[int, int]) -> None:
    ballot = vote("ballot", brought)
    assert [k for k in range(32) if ballot >> k & 1] == sorted(k for k, v in brought.items() if v)
    assert vote("any", brought) == int(ballot != 0)
    assert vote("all", brought) == int(all(brought.values()))
    assert vote("uni", brought) == int(vote("all", brought) or not vote("any", brought))


@given(LANES)
def test_a_match_is_an_equivalence(brought: dict[int, int]) -> None:
    for lane, value in brought.items():
        mask, _ = match_lanes("any", lane, "b32", brought)
        assert mask >> lane & 1
        assert all((mask >> k & 1) == (v == value) for k, v in brought.items())
        everyone, same = match_lanes("all", lane, "b32", brought)
        assert same == (len(set(brought.values())) == 1)
        assert everyone == (mask if same else 0)


@given(LANES)
def test_reductions(brought: dict[int, int]) -> None:
    assert redux("add", "u32", brought) == sum(brought.values()) & FULL
    assert redux("max", "u32", brought) == max(brought.values())
    signed = [v - (1 << 32) if v >> 31 else v for v in brought.values()]
    assert redux("min", "s32", brought) == min(signed)


@given(LANES)
def test_one_lane_is_elected(brought: dict[int, int]) -> None:
    lanes = frozenset(brought)
    assert sum(elect(FULL, lane, lanes)[1] for lane in lanes) == 1
    assert len({elect(FULL, lane, lanes)[0] for lane in lanes}) == 1
    assert result("elect", "b32", FULL, min(lanes), brought) == (min(lanes), 1)
