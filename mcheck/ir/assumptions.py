"""Assumptions that the user asks for, beside those of every answer (open question Q25)."""

from __future__ import annotations

from mcheck.base.records import dataclass

CONVERGED = "converged"
NAMES = (CONVERGED,)
"""The names of ``--assume``."""


@dataclass(frozen=True, slots=True)
class Assumptions:
    """``converged``: lanes that execute a statement stay together, which the text does not guarantee (9.7.13.2)."""

    converged: bool = False

    def describe(self) -> tuple[str, ...]:
        """The assumptions as text, for reports."""
        return ("lanes of a warp that execute one statement go on together",) if self.converged else ()

    def extended_by(self, names: tuple[str, ...]) -> Assumptions:
        """These and further assumptions, by their names."""
        return Assumptions(converged=self.converged or CONVERGED in names)
