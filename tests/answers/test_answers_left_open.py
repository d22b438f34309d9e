"""Reasons of pairs that an open question of the model leaves open."""

from mcheck.answers.left_open import ABOUT, LeftOpen, is_question
from mcheck.cat import load_model
from mcheck.cat.algebra.compiled_models import tape_of
from mcheck.cat.model_files import model_names


def test_a_question_of_a_model_of_ones_own_is_not_said_to_be_about_multimem() -> None:
    said = LeftOpen(follows=False, lines=(3, 5), question="Q7").describe()
    assert said == "the model leaves open whether line 3 and line 5 are ordered (open question Q7)"


def test_every_question_of_the_shipped_models_is_told_in_words() -> None:
    flags = {check.name for name in model_names() for check in tape_of(load_model(name)).checks}
    assert {name for name in flags if is_question(name)} == set(ABOUT)
    assert all(
        question in LeftOpen(follows, (3, 5), question).describe() for question in ABOUT for follows in (True, False)
    )
