"""Relations between all events of a window."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcheck.cat.algebra.bits import inverse
from mcheck.engines.protocol.incremental import full_evaluation
from mcheck.engines.protocol.incremental.full_evaluation import close_transitively, transpose
from mcheck.engines.protocol.incremental.kinds import FORWARD


@st.composite
def relations(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """Columns, most of whose edges follow the order in which the events came, and that order."""
    size = draw(st.integers(1, 9))
    live = draw(st.permutations(range(size)))
    columns = [0] * size
    for k, event in enumerate(live):
        columns[event] = sum(1 << live[j] for j in range(k) if draw(st.booleans()))
    for later, earlier in draw(st.lists(st.tuples(st.sampled_from(live), st.sampled_from(live)), max_size=4)):
        columns[earlier] |= 1 << later
    return columns, live


@given(relations())
def test_a_closure_is_that_of_warshall(given: tuple[list[int], list[int]]) -> None:
    columns, live = given
    expected = list(columns)
    for m in live:
        for k in live:
            if expected[k] >> m & 1:
                expected[k] |= expected[m]
    found = [0] * len(columns)
    close_transitively(columns, found, live)
    assert found == expected


def test_a_program_order_of_many_threads_is_gone_through_once(monkeypatch: pytest.MonkeyPatch) -> None:
    threads, rounds = 20, 30
    live = list(range(threads * rounds))
    before = [1 << k for k in live]
    order = [sum(1 << j for j in range(k % threads, k, threads)) for k in live]
    looked_at = 0

    def union(columns: list[int], x: int) -> int:
        nonlocal looked_at
        looked_at += x.bit_count()
        return sum(columns[k] for k in live if x >> k & 1)

    monkeypatch.setattr(full_evaluation, "_union", union)
    found = [0] * len(live)
    full_evaluation._follow(before, order, found, live, FORWARD, FORWARD)
    assert found == order
    assert looked_at <= len(live)


@pytest.mark.parametrize("size", [0, 1, 5, 64, 129, 300])
def test_a_transposed_matrix_is_the_inverse(size: int) -> None:
    random = Random(size)
    for density in (0, 1, 4, 8):
        columns = [random.getrandbits(8 * size + 8) & ((1 << size) - 1) for _ in range(size)]
        for _ in range(8 - density):
            columns = [x & random.getrandbits(size + 1) for x in columns]
        assert transpose(columns) == inverse(columns)
        assert transpose(transpose(columns)) == columns
