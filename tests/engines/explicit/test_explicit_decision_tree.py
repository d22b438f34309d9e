"""A function of candidates is computed once for all that agree in the choices it looks at."""

from __future__ import annotations

from itertools import product

import pytest

from mcheck.engines.explicit.decision_tree import DecisionTree
from mcheck.events.choices.candidate import Candidate

CANDIDATES = list(product((-1, 0, 1), repeat=4))


def test_it_is_computed_once_for_the_choices_that_it_looks_at() -> None:
    asked: list[Candidate] = []

    def value(candidate: Candidate) -> int:
        asked.append(tuple(candidate))
        return candidate[candidate[2] + 1] if candidate[2] >= 0 else 9

    tree = DecisionTree(value)
    assert [tree(each) for each in CANDIDATES] == [each[each[2] + 1] if each[2] >= 0 else 9 for each in CANDIDATES]
    assert len(asked) == 1 + 3 + 1  # with an open choice, with each option of choice 1, and of choice 2, which is known


def test_one_that_looks_at_nothing_is_computed_once() -> None:
    asked = []
    tree = DecisionTree(lambda candidate: asked.append(candidate) or "same")
    assert {tree(each) for each in CANDIDATES} == {"same"}
    assert len(asked) == 1


def test_a_choice_that_is_looked_at_twice_is_one_question() -> None:
    tree = DecisionTree(lambda candidate: candidate[3] * 2 + candidate[3])
    assert [tree(each) for each in CANDIDATES] == [3 * each[3] for each in CANDIDATES]
    assert sorted(tree.results) == [(-1,), (0,), (1,)]


def test_an_error_is_no_result() -> None:
    def fail(candidate: Candidate) -> int:
        raise LookupError(candidate[0])

    tree = DecisionTree(fail)
    for _ in range(2):
        with pytest.raises(LookupError, match="1"):
            tree((1, 0))
