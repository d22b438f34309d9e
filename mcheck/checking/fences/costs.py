"""The costs of synchronisation: a table that users can replace."""

from __future__ import annotations

import re
import tomllib
from importlib import resources
from pathlib import Path

from mcheck.base.errors import InputError
from mcheck.base.records import dataclass
from mcheck.checking.fences.outline import Outline, outline

_SCOPE = re.compile(r"^[\w.:]*?\.(cluster|gpu|sys)\b(?!::)")
_ONE_SIDE = re.compile(r"^fence\.(?:acquire|release)\b")
"""A fence of one side counts as one of both; what it costs by itself was not measured."""
_WORD = re.compile(r"\w")
_TABLES = ("cycles", "wider", "edit")


@dataclass(frozen=True, slots=True)
class Costs:
    """The cycles of instructions by the beginning of their names, what a wide scope adds, and what each edit adds."""

    cycles: dict[str, float]
    wider: dict[str, float]
    edit: dict[str, float]

    def of(self, instruction: str) -> float:
        """The cost of an instruction; 0 if it is no synchronisation."""
        name = instruction.split(None, 1)[0].rstrip(";") if instruction.strip() else ""
        name = _ONE_SIDE.sub("fence.acq_rel", name)
        found = max((key for key in self.cycles if _begins(name, key)), key=len, default=None)
        waited = instruction.partition("await ")[2]
        scope = _SCOPE.match(waited or name)
        if found is None or name.startswith(("barrier.cluster", "fence.mbarrier_init")):
            return self.cycles.get(found or "", 0)
        return self.cycles[found] + (self.wider.get(scope[1], 0) if scope and scope[1] not in found else 0)

    def of_program(self, program: Outline) -> float:
        """The cost of all statements."""
        return sum(self.of(statement.instruction) for statement in program.statements)


def _begins(name: str, words: str) -> bool:
    """Whether a name begins with these whole words."""
    return name.startswith(words) and _WORD.match(name, len(words)) is None


def cost_of_text(text: str, costs: Costs) -> float:
    """The cost of a program in block form; 0 of another text."""
    program = outline(text)
    return 0 if program is None else costs.of_program(program)


def read_costs(path: str | None = None) -> Costs:
    """The costs in a file of TOML, or the costs of mcheck."""
    source = resources.files(__package__) / "costs.toml" if path is None else Path(path)
    try:
        tables = tomllib.loads(source.read_text(encoding="utf-8"))
    except (OSError, UnicodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"the costs in {path} cannot be read: {error}") from None
    return Costs(*({key: _number(key, value) for key, value in tables.get(name, {}).items()} for name in _TABLES))


def _number(key: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        raise InputError(f"the cost of {key} is not a number of cycles: {value}")
    return float(value)
