"""While an execution grows, what was there before is set aside; afterwards all is as it was."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from weakref import ref

import pytest

from mcheck.cat import load_model
from mcheck.checking.policy.ask import ask
from mcheck.checking.policy.question import Completeness, Question
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.gc_control import COLLECTION_THRESHOLD, collect_rarely
from mcheck.frontend.litmus import parse
from tests.engines.protocol import sketches, unbounded


@pytest.fixture(autouse=True)
def nothing_aside() -> Iterator[None]:
    """What collecting the tests has set aside is put back for the test."""
    gc.unfreeze()
    yield
    gc.freeze()


@pytest.mark.daily(days=3, least=0)
def test_what_was_there_is_set_aside_and_comes_back() -> None:
    before = gc.get_threshold()
    with collect_rarely():
        assert gc.get_freeze_count() > 0
        assert gc.get_threshold()[0] == max(before[0], COLLECTION_THRESHOLD)
        with collect_rarely():
            pass
        assert gc.get_freeze_count() > 0, "the inner one ends what the outer one began"
    assert (gc.get_freeze_count(), gc.get_threshold()) == (0, before)


def test_so_it_is_after_an_error() -> None:
    before = gc.get_threshold()
    with pytest.raises(ValueError, match="over"):
        _fails()
    assert (gc.get_freeze_count(), gc.get_threshold()) == (0, before)


def _fails() -> None:
    with collect_rarely():
        raise ValueError("over")


def test_what_others_set_aside_stays_aside() -> None:
    gc.freeze()
    try:
        with collect_rarely():
            pass
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()


@pytest.mark.parametrize("text", [sketches.ring(4), unbounded.ring(2)], ids=["four rounds", "any number of them"])
def test_an_execution_is_gone_when_it_is_over(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no cycles, so that nobody has to look for what it leaves behind."""
    made: list[ref[Machine]] = []
    begin = Machine.__init__

    def noted(self: Machine, *args: object) -> None:
        made.append(ref(self))
        begin(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(Machine, "__init__", noted)
    gc.disable()
    try:
        program = parse(text, "ring.litmus", every=True)
        found = ask(program, load_model("ptx-9.0"), Question(about=Completeness.FINDINGS, brief=True), "protocol")
    finally:
        gc.enable()
    assert found.verdict == "proved"
    assert made
    assert [m for m in made if m() is not None] == []
