"""Long executions, of which most events are forgotten: copies in flight stay."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from random import Random

import pytest

from benchmarks.scale import multicast
from mcheck.cat import load_model
from mcheck.engines.protocol.incremental import indistinguishable
from mcheck.engines.protocol.incremental.indistinguishable import columns_of
from mcheck.frontend.litmus import parse
from tests.engine_findings import engine_findings

LOOP = """  mov.u32 %r1, 0;
L:
  ld.shared.u32 r2, [y];
  add.u32 %r1, %r1, 1;
  setp.lt.u32 %p1, %r1, 300;
  @%p1 bra L;
"""
COPIES = """PTX copies-in-flight
{ .shared .align 16 .u32 s[32]; .global .align 16 .u32 g[32]; .shared .u32 y; }
P@cta 0 {
COPIES
LOOP
  cp.async.bulk.wait_group.read 2;
  st.shared.u32 [s+AT], 1;
  cp.async.bulk.wait_group 0;
}
"""
COPY = "  cp.async.bulk.global.shared::cta.bulk_group [g+AT], [s+AT], 16;\n  cp.async.bulk.commit_group;\n"


@pytest.mark.daily
@pytest.mark.parametrize("copy", range(4, 8))
def test_copies_in_flight_are_told_apart(copy: int) -> None:
    copies = "".join(COPY.replace("AT", str(16 * k)) for k in range(8))
    test = COPIES.replace("COPIES\n", copies).replace("LOOP\n", LOOP).replace("AT", str(16 * copy))
    found = engine_findings("protocol", parse(test, "copies.litmus"), load_model("ptx-9.0"), timeout=60)
    assert (found.complete, found.codes) == (True, {"RACE003"} if copy >= 6 else frozenset())


def test_the_same_events_are_in_the_same_sets_with_numpy_and_without(monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(7)
    rows = [random.getrandbits(40) & random.getrandbits(40) for _ in range(6)]
    given = []
    for without in (False, True):
        if without:
            monkeypatch.delitem(sys.modules, "numpy")
        else:
            pytest.importorskip("numpy")
        columns = columns_of(rows, 64)
        given.append([columns.index(column) for column in columns])
    assert given[0] == given[1] == [rows_of(rows).index(row) for row in rows_of(rows)]


def rows_of(rows: list[int]) -> list[tuple[int, ...]]:
    return [tuple(row >> k & 1 for row in rows) for k in range(64)]


@pytest.mark.daily(days=3, least=0)
def test_where_few_events_would_go_a_look_at_some_rows_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def counted(rows: list[int], size: int) -> Sequence[object]:
        seen.append(len(rows))
        return columns_of(rows, size)

    monkeypatch.setattr(indistinguishable, "columns_of", counted)
    found = engine_findings("protocol", parse(multicast(4), "cluster.litmus"), load_model("ptx-9.0"), timeout=60)
    assert (found.complete, found.codes) == (True, frozenset())
    assert seen
    assert max(seen) <= indistinguishable.SAMPLE_ROWS
