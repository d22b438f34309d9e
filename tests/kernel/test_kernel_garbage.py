"""While an execution grows, what was there before is set aside; afterwards all is as it was."""

from __future__ import annotations

import gc

import pytest

from mcheck.kernel.garbage import OBJECTS, seldom


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
