"""Corrections for operations without an SMT-LIB translation: their results for the arguments of a solution."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from mcheck.engines.z3.bit_vectors import Vectors, literal
from mcheck.events.choices.candidate import Candidate, CircularValue, Undetermined
from mcheck.events.choices.prepared import Prepared
from mcheck.semantics.terms import Unknown

if TYPE_CHECKING:
    import z3


def corrections(
    prepared: Prepared, candidate: Candidate, vectors: Vectors, model: z3.ModelRef, solver: Any
) -> Iterator[str]:
    """SMT-LIB assertions that give every wrong guess of a solution its value for the solution's arguments."""
    if not vectors.guesses:
        return
    valuation = prepared.valuation(candidate)
    for guess in vectors.guesses:
        try:
            value = valuation.term(guess.term)
            arguments = [valuation.term(term) for term, _ in guess.arguments]
        except (Unknown, Undetermined, CircularValue):
            continue
        variable = solver.BitVec(guess.vector.text, guess.vector.bits)
        wanted = value & ((1 << guess.vector.bits) - 1)
        if model.eval(variable, model_completion=True).as_long() == wanted:
            continue
        given = " ".join(
            f"(= {v.text} {literal(x, v.bits)})" for x, (_, v) in zip(arguments, guess.arguments, strict=True)
        )
        yield f"(assert (=> (and {given}) (= {guess.vector.text} {literal(value, guess.vector.bits)})))"
