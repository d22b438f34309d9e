"""Proofs for every number of rounds of small clusters that are drawn, against runs of the numbers one by one."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

import pytest

from mcheck.base import declared_state
from mcheck.base.budget import Limit
from mcheck.cat import load_model
from mcheck.engines.protocol.findings_answer import check
from mcheck.engines.protocol.incremental.state import State
from mcheck.frontend.litmus import parse
from mcheck.ir.loop_unrolling import Aperiodic
from mcheck.proofs.parametric_proof import prove
from tests.engines.protocol.clusters import MISTAKES, cluster
from tests.engines.protocol.unbounded import PING_PONG, TWO_PIPELINES, ring

FAR = 36
"""Rounds behind those in which all of the mistakes show."""
MODEL = "ptx-9.0"


def answers(text: str, numbers: Iterable[int]) -> dict[int, tuple[str, int]]:
    """The verdicts and executions with some numbers, each run in full."""
    program = parse(text, "any.litmus", every=True)
    assert program.instance is not None
    found = {number: check(program.instance(number), load_model(MODEL)) for number in numbers}
    return {number: (answer.verdict, answer.executions) for number, answer in found.items()}


def proof(text: str) -> tuple[str, int, int] | None:
    """The verdict for all numbers, the first of them and the period; none if there is none."""
    try:
        given = prove(parse(text, "any.litmus", every=True), load_model(MODEL), "ptx", 2, Limit(None))
    except Aperiodic:
        return None
    return given.answer.verdict, given.first, given.period


@pytest.mark.daily(least=0)
@pytest.mark.parametrize("seed", range(8))
def test_what_is_proved_of_a_cluster_holds_of_every_number(seed: int) -> None:
    given = proof(cluster(Random(seed)))
    if given is None:
        return
    verdict, first, period = given
    numbers = (*range(first, first + period + 1), FAR)
    assert set(answers(cluster(Random(seed)), numbers).values()) == {(verdict, 1)}


@pytest.mark.daily(least=0)
def test_most_right_clusters_are_proved() -> None:
    assert sum(proof(cluster(Random(seed))) is not None for seed in range(8)) >= 5


@pytest.mark.daily
@pytest.mark.parametrize("mistake", MISTAKES)
def test_no_mistake_in_a_cluster_is_proved(mistake: str) -> None:
    wrong = [t for k in range(12) if (t := cluster(Random(k), mistake)) != cluster(Random(k))]
    for text in wrong[:3]:
        given = proof(text)
        if given is not None:  # it makes no difference to this one
            assert set(answers(text, (given[1] + given[2], FAR)).values()) == {(given[0], 1)}


class Everything(dict[int, int]):
    """The columns of a window of which any event's may be filled."""

    def __init__(self, window: State) -> None:
        super().__init__()
        self.window = window

    def __getitem__(self, _node: int) -> int:
        return self.window.all

    def __setitem__(self, _node: int, _events: int) -> None:
        pass


@pytest.mark.daily
@pytest.mark.parametrize("text", [ring(), PING_PONG, TWO_PIPELINES, *(cluster(Random(k)) for k in (1, 2, 4))])
def test_which_columns_are_empty_decides_nothing(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """So a canonical form need not tell it (``mcheck.engines.protocol.reduction.canonical_form``)."""
    numbers = 1, 4, 9
    known = proof(text), answers(text, numbers)
    monkeypatch.setattr(State, "filled", property(Everything, lambda *_: None), raising=False)
    monkeypatch.setattr(declared_state, "_check_complete", lambda *_: None)  # a property is no attribute of an object
    assert (proof(text), answers(text, numbers)) == known
