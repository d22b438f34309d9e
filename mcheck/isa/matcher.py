"""From an instruction as written to the one variant of the table that it is, or to the reason why it is none.

Only spelling and operand shapes take part here, so the result can be remembered per opcode and shape; constants and
register types are checked for every instruction (``mcheck.isa.operands``).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mcheck.isa import operands as operand_checks
from mcheck.isa.schema import Arg, Family, Qualifiers, Variant
from mcheck.isa.targets import describe, meets

Opcode = tuple[str, ...]
Shapes = tuple[operand_checks.Shape, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """A recognised spelling: the variant, its qualifiers, and which operand stands at which index."""

    family: Family
    variant: Variant
    q: Qualifiers
    binding: tuple[tuple[Arg, int], ...]
    places: dict[str, int]


@dataclass(slots=True)
class Failure:
    """Why a variant does not match; of all failures the one with the greatest ``rank``, the furthest, is reported."""

    rank: tuple[int, int]
    family: Family
    message: str
    part: int | None = None
    operand: int | None = None
    expected: tuple[str, ...] = ()
    hint: str | None = None


_QUALIFIER, _MISSING, _RULE, _OPERANDS, _TARGET = range(5)


def match(opcode: Opcode, shapes: Shapes, families: Iterable[Family], target: str | None) -> Plan | Failure:
    """The plan of the first variant that opcode and operand shapes fit, else the most telling failure."""
    failures: list[Failure] = []
    for family in families:
        for variant in family.variants:
            result = _match_variant(opcode, shapes, family, variant, target)
            if isinstance(result, Plan):
                return result
            failures.append(result)
    best = max(failures, key=lambda failure: failure.rank)
    ties = [failure for failure in failures if failure.rank == best.rank]
    seen: dict[str, None] = {}
    for failure in ties:
        seen.update(dict.fromkeys(failure.expected))
    best.expected = tuple(seen)
    return best


def _match_variant(
    opcode: Opcode, shapes: Shapes, family: Family, variant: Variant, target: str | None
) -> Plan | Failure:
    start = len(family.head)
    q: dict[str, str] = {}
    places: dict[str, int] = {}
    last: dict[str, int] = {}  # per kind, the slot filled last
    named = 0  # how many parts of the name
    for position in range(start, len(opcode)):
        part = opcode[position]
        for index, slot in enumerate(variant.slots):
            if part in slot.values and slot.name not in q and index > last.get(slot.kind, -1):
                if slot.kind == "name" and len(q) > named:
                    continue
                q[slot.name] = part
                places[slot.name] = position
                if slot.kind:
                    last[slot.kind] = index
                named += slot.kind == "name"
                break
        else:
            return _wrong_part(family, variant, opcode, position, q)
    for slot in variant.slots:
        if slot.name in q:
            continue
        if not slot.optional:
            legal = tuple("." + value for value in slot.values)
            message = f"'{_dotted(opcode)}' lacks its {_words(slot.name)}"
            return Failure((_MISSING, len(q)), family, message, part=len(opcode) - 1, expected=legal)
        if slot.default is not None:
            q[slot.name] = slot.default
    for done, rule in enumerate(variant.rules):
        if not rule.test(q):
            expected = rule.expected(q) if callable(rule.expected) else rule.expected
            place = places.get(rule.slot, len(opcode) - 1)
            return Failure(
                (_RULE, len(places) * 100 + done),
                family,
                _fill(rule.message, q),
                place,
                expected=(expected,) * bool(expected),
            )
    bound = _bind(opcode, shapes, family, variant, q)
    if isinstance(bound, Failure):
        return bound
    if target is not None:
        failure = _check_target(family, variant, q, places, bound, target)
        if failure is not None:
            return failure
    return Plan(family, variant, q, bound, places)


def _wrong_part(family: Family, variant: Variant, opcode: Sequence[str], position: int, q: Qualifiers) -> Failure:
    part = opcode[position]
    free = tuple("." + value for slot in variant.slots if slot.name not in q for value in slot.values)
    taken = next((slot for slot in variant.slots if part in slot.values and slot.name in q), None)
    rank = (_QUALIFIER, position)
    if taken is not None and q[taken.name] != part:
        message = f"'.{part}' cannot stand beside '.{q[taken.name]}': the {_words(taken.name)} is given once"
        return Failure(rank, family, message, position)
    if taken is not None:
        return Failure(rank, family, f"'.{part}' is given twice or in the wrong place", position, expected=free)
    known = {value for other in family.variants for slot in other.slots for value in slot.values}
    hint = None
    if part in known:
        legal = f" with '.{'.'.join(opcode[len(family.head) : position])}'" if position > len(family.head) else ""
        message = f"'.{part}' is not legal in '{family.name}'{legal}"
    else:
        message = f"'.{part}' is not a qualifier of '{family.name}'"
        near = difflib.get_close_matches(part, sorted(known), n=1, cutoff=0.6)
        if near:
            hint = f"did you mean '.{near[0]}'?"
    if not free:
        message += "; nothing may follow here"
    return Failure(rank, family, message, position, expected=free, hint=hint)


def _bind(
    opcode: Opcode, shapes: Shapes, family: Family, variant: Variant, q: Qualifiers
) -> tuple[tuple[Arg, int], ...] | Failure:
    """Pair the operands with the arguments: optional ones are filled from the left."""
    wanted = [arg for arg in variant.args if arg.when is None or arg.when(q)]
    required = sum(1 for arg in wanted if not arg.optional)
    given = len(shapes)
    if not required <= given <= len(wanted):
        legal = str(required) if required == len(wanted) else f"{required} to {len(wanted)}"
        message = f"'{_dotted(opcode)}' takes {legal} operand{'s' * (legal != '1')}, {given} given"
        shape = ", ".join(_describe_arg(arg, q) for arg in wanted) or "no operands"
        where = len(wanted) if given > len(wanted) else None
        rank = (_OPERANDS, -abs(given - required))
        return Failure(rank, family, message, operand=where, expected=(shape,))
    spare = given - required
    binding: list[tuple[Arg, int]] = []
    for arg in wanted:
        if arg.optional:
            if not spare:
                continue
            spare -= 1
        binding.append((arg, len(binding)))
    for arg, index in binding:
        problem = operand_checks.shape_problem(arg, shapes[index], q)
        if problem is not None:
            return Failure((_OPERANDS, 1 + index), family, problem[0], operand=index, expected=(problem[1],))
    return tuple(binding)


def _check_target(
    family: Family,
    variant: Variant,
    q: Qualifiers,
    places: Mapping[str, int],
    binding: Sequence[tuple[Arg, int]],
    target: str,
) -> Failure | None:
    rank = (_TARGET, 0)
    for slot in variant.slots:
        needs = slot.needs.get(q.get(slot.name, ""), ())
        if slot.name in places and not meets(target, needs):
            message = f"'.{q[slot.name]}' needs {describe(needs)}; the target is {target}"
            return Failure(rank, family, message, places[slot.name])
    for arg, index in binding:
        if not meets(target, arg.needs):
            message = f"'{arg.name}' needs {describe(arg.needs)}; the target is {target}"
            return Failure(rank, family, message, operand=index)
    for requirement in variant.requirements:
        if requirement.test(q) and not meets(target, requirement.needs):
            part = q.get(requirement.slot, "")
            message = f"'.{part}' here needs {describe(requirement.needs)}; the target is {target}"
            return Failure(rank, family, message, places.get(requirement.slot, 0))
    needs = variant.needs or family.needs
    if not meets(target, needs):
        name = f"{family.name} ({variant.name})" if variant.needs and variant.name else family.name
        return Failure(rank, family, f"'{name}' needs {describe(needs)}; the target is {target}", 0)
    return None


def _describe_arg(arg: Arg, q: Qualifiers) -> str:
    text = operand_checks.describe(arg, q)
    return "{" + text + "}" if arg.optional else text


def _fill(message: str, q: Qualifiers) -> str:
    return message.format_map(_Default(q))


class _Default(dict[str, str]):
    def __missing__(self, key: str) -> str:
        return "?"


def _dotted(opcode: Sequence[str]) -> str:
    return ".".join(opcode)


def _words(name: str) -> str:
    return name.replace("_", " ")
