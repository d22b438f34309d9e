"""Masks of events: their members, and the events that lead to some of them, in time that is linear in their width."""

from __future__ import annotations

from random import Random

import pytest

from mcheck.cat import load_model
from mcheck.cat.algebra.compiled_models import tape_of
from mcheck.engines.protocol.incremental.entries import MANY, bits
from mcheck.engines.protocol.incremental.window import Window
from mcheck.frontend.litmus import parse
from tests.effort import effort

PROGRAM = """PTX thread
{ .global .u32 x; }
P@cta 0 { st.global.u32 [x], 1; }
"""


def window_of(events: int) -> Window:
    window = Window(parse(PROGRAM, "thread.litmus"), tape_of(load_model("ptx-9.0")))
    window.all = events
    return window


@pytest.mark.parametrize("count", [0, 1, MANY, MANY + 1, 200])
def test_the_members_of_a_mask_come_in_order(count: int) -> None:
    members = sorted(Random(count).sample(range(1000), count))
    assert [*bits(sum(1 << k for k in members))] == members


@pytest.mark.parametrize("seed", range(4))
def test_the_rows_of_a_column_are_the_live_events_that_lead_to_a_set(seed: int) -> None:
    random = Random(seed)
    size = 90
    window = window_of(random.getrandbits(size))
    column = [random.getrandbits(size) & random.getrandbits(size) & random.getrandbits(size) for _ in range(size)]
    for wanted in (0, 1 << random.randrange(size), random.getrandbits(size) & random.getrandbits(size)):
        found = {k for k in range(size) if window.all >> k & 1 and column[k] & wanted}
        assert {*bits(window.rows(wanted, column))} == found


def test_members_and_rows_of_wide_masks_take_linear_time() -> None:
    """With a step as wide as the mask for each member these take seconds."""
    size = 1 << 17
    every = (1 << size) - 1
    window, column = window_of(every), [1] * size
    assert effort(lambda: sum(bits(every)), 0.5) < 0.5
    assert window.rows(1, column) == every
    assert effort(lambda: window.rows(1, column), 0.5) < 0.5
