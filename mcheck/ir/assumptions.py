"""What an answer assumes because it was asked to, beside what every answer does (open question Q25)."""

from __future__ import annotations

from mcheck.base.records import dataclass

CONVERGED = "converged"
NAMES = (CONVERGED,)
"""What ``--assume`` knows."""


@dataclass(frozen=True, slots=True)
class Assumptions:
    """``converged``: lanes of a warp that execute one statement go on together. No text promises it (9.7.13.2)."""

    converged: bool = False

    def described(self) -> tuple[str, ...]:
        """In words, for the list of what an answer rests on."""
        return ("lanes of a warp that execute one statement go on together",) if self.converged else ()

    def and_(self, names: tuple[str, ...]) -> Assumptions:
        """These and further ones, by their names."""
        return Assumptions(converged=self.converged or CONVERGED in names)
