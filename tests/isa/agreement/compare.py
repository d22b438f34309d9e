"""Both verdicts on the same lines, and where they differ."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mcheck.base.errors import InputError, Unsupported
from mcheck.base.records import dataclass
from mcheck.isa.decode import decode
from tests.isa.agreement import known_differences
from tests.isa.agreement.ptxas import VERSION, rejected
from tests.isa.agreement.sample import Line, object_space, register_type

TARGETS = ("sm_80", "sm_90a", "sm_100a", "sm_107a", "sm_120a")


@dataclass(frozen=True, slots=True)
class Difference:
    """A line that one side takes (``accepts``: table or ptxas) and the other refuses with ``words``."""

    line: Line
    accepts: str
    words: str
    entry: known_differences.Meant | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """What came out for one target."""

    target: str
    lines: int
    accepted: int
    refused: int
    differences: tuple[Difference, ...]

    @property
    def unmeant(self) -> tuple[Difference, ...]:
        return tuple(difference for difference in self.differences if difference.entry is None)


def refusal(line: Line, target: str) -> str | None:
    """Why the table refuses a line, ``None`` if it takes it (modelled or not)."""
    try:
        decode(line.instruction, target=target, register_type=register_type, dialect=False, object_space=object_space)
    except Unsupported:
        return None
    except InputError as error:
        return error.message
    return None


def compare(ptxas: Path, lines: Sequence[Line], target: str, version: str = VERSION) -> Comparison:
    """Ask both sides about every line. With an older version than the table's, what the table takes and the assembler
    does not is no disagreement: forms are not held to the version that introduced them.
    """
    theirs = rejected(ptxas, [line.text for line in lines], target, version)
    accepted = refused = 0
    differences = []
    for index, line in enumerate(lines):
        ours = refusal(line, target)
        their = theirs.get(index)
        if (ours is None) == (their is None):
            accepted += ours is None
            refused += ours is not None
            continue
        if ours is None and version != VERSION:
            continue
        accepts, words = ("table", their) if ours is None else ("ptxas", ours)
        differences.append(
            Difference(line, accepts, words or "", known_differences.find(accepts, line.text, words or ""))
        )
    return Comparison(target, len(lines), accepted, refused, tuple(differences))
