"""While an execution grows, what was there before is set aside; afterwards all is as it was."""

from __future__ import annotations

import gc
import sys

import pytest

from mcheck.kernel import garbage
from mcheck.kernel.garbage import OBJECTS, Heap, seldom


def test_what_was_there_is_set_aside_and_comes_back() -> None:
    before = gc.get_threshold()
    with seldom():
        assert gc.get_freeze_count() > 0
        assert gc.get_threshold()[0] == max(before[0], OBJECTS)
        with seldom():
            pass
        assert gc.get_freeze_count() > 0, "the inner one ends what the outer one began"
    assert (gc.get_freeze_count(), gc.get_threshold()) == (0, before)


def test_so_it_is_after_an_error() -> None:
    before = gc.get_threshold()
    with pytest.raises(ValueError, match="over"):
        _fails()
    assert (gc.get_freeze_count(), gc.get_threshold()) == (0, before)


def _fails() -> None:
    with seldom():
        raise ValueError("over")


def test_what_others_set_aside_stays_aside() -> None:
    gc.freeze()
    try:
        with seldom():
            pass
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()


def test_what_executions_leave_behind_does_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(garbage, "BLOCKS", 50_000)
    monkeypatch.setattr(garbage, "HEAP", Heap())
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(before // 20_000 + 10):
        with seldom():
            _leave(20_000)
    left = sys.getallocatedblocks() - before
    assert left < before + 50_000 + 4 * 20_000, "no more than is allowed, and what one execution leaves"


def _leave(cycles: int) -> None:
    for _ in range(cycles):
        cycle: list[object] = []
        cycle.append(cycle)
