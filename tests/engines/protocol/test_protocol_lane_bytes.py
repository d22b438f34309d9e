"""Which bytes a lane accesses, where one record stands for the accesses of several lanes."""

from __future__ import annotations

import pytest

from mcheck.engines.protocol.state.access_history import LaneOwners, Lanes, lane_bytes

SCATTERED = LaneOwners(starts=(0, 64, 128), size=16, lanes=(2, 0, 1))


@pytest.mark.parametrize(
    ("lanes", "byte", "found"),
    [
        ((256, 16), 256, (256, 272)),
        ((256, 16), 300, (288, 304)),
        (SCATTERED, 70, (64, 80)),
        (SCATTERED, 128, (128, 144)),
        (3, 70, None),
        (None, 70, None),
    ],
)
def test_a_lane_has_its_own_bytes(lanes: Lanes, byte: int, found: tuple[int, int] | None) -> None:
    assert lane_bytes(lanes, byte) == found
