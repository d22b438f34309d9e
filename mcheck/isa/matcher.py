"""Matching of an instruction as written against the table: to its variant, or to the reason why there is none.

Only spelling and operand shapes take part here, so the result can be remembered per opcode and shape; constants and
register types are checked for every instruction (``mcheck.isa.operands``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from mcheck.base.records import dataclass, replace
from mcheck.isa import operands as operand_checks
from mcheck.isa.schema import Arg, Family, Qualifiers, Variant
from mcheck.isa.targets import describe, meets_target
from mcheck.isa.wording import (
    Wording,
    explain_broken_rule,
    explain_missing,
    explain_operand_count,
    explain_wrong_part,
    merge_wordings,
    plain_wording,
)

Parts = tuple[str, ...]
Shapes = tuple[operand_checks.Shape, ...]


@dataclass(frozen=True, slots=True)
class MatchedForm:
    """A recognised spelling: the variant, its qualifiers, and which operand stands at which index."""

    family: Family
    variant: Variant
    q: Qualifiers
    binding: tuple[tuple[Arg, int], ...]
    places: dict[str, int]


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a variant does not match, at which part of the opcode or at which operand.

    Of all failures the one with the greatest ``rank``, which came furthest, is reported, and only that one is put into
    words.
    """

    rank: tuple[int, int]
    family: Family
    words: Callable[[], Wording]
    part: int | None = None
    operand: int | None = None


Matched = tuple[dict[str, str], dict[str, int]] | Failure
"""The qualifiers of an opcode by slot, and the places of those that are written; or why there are none."""

_QUALIFIER, _MISSING, _RULE, OPERANDS, _TARGET = range(5)


def match(opcode: Parts, shapes: Shapes, families: Iterable[Family], target: str | None) -> MatchedForm | Failure:
    """The form of the first variant that opcode and operand shapes fit, else the most telling failure."""
    failures: list[Failure] = []
    for family in families:
        for variant in family.variants:
            result = _match_variant(opcode, shapes, family, variant, target)
            if isinstance(result, MatchedForm):
                return result
            failures.append(result)
    best = max(failures, key=lambda failure: failure.rank)
    ties = [failure for failure in failures if failure.rank == best.rank]
    return (
        best if len(ties) == 1 else replace(best, words=lambda: merge_wordings([failure.words() for failure in ties]))
    )


def _match_variant(
    opcode: Parts, shapes: Shapes, family: Family, variant: Variant, target: str | None
) -> MatchedForm | Failure:
    found = match_qualifiers(opcode, family, variant)
    if isinstance(found, Failure):
        return found
    q, places = found
    bound = _bind(opcode, shapes, family, variant, q)
    if isinstance(bound, Failure):
        return bound
    if target is not None:
        failure = _check_target(family, variant, q, places, bound, target)
        if failure is not None:
            return failure
    return MatchedForm(family, variant, q, bound, places)


def match_qualifiers(opcode: Parts, family: Family, variant: Variant) -> Matched:
    """The qualifiers of an opcode by slot, and the places of those that are written."""
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
            rank = (_QUALIFIER, position)
            return Failure(rank, family, partial(explain_wrong_part, family, variant, opcode, position, q), position)
    absent = [slot for slot in variant.slots if not slot.optional and slot.name not in q]
    if absent:
        rank = (_MISSING, len(q) - 100 * len(absent))
        return Failure(rank, family, partial(explain_missing, opcode, absent[0]), len(opcode) - 1)
    q.update({slot.name: slot.default for slot in variant.slots if slot.default is not None and slot.name not in q})
    for done, rule in enumerate(variant.rules):
        if not rule.test(q):
            place = places.get(rule.slot, len(opcode) - 1)
            return Failure((_RULE, len(places) * 100 + done), family, partial(explain_broken_rule, rule, q), place)
    return q, places


def _bind(
    opcode: Parts, shapes: Shapes, family: Family, variant: Variant, q: Qualifiers
) -> tuple[tuple[Arg, int], ...] | Failure:
    """Pair the operands with the arguments: optional ones are filled from the left."""
    wanted = [arg for arg in variant.args if arg.when is None or arg.when(q)]
    required = sum(1 for arg in wanted if not arg.optional)
    given = len(shapes)
    if not required <= given <= len(wanted):
        where = len(wanted) if given > len(wanted) else None
        rank = (OPERANDS, -abs(given - required))
        return Failure(rank, family, partial(explain_operand_count, variant, opcode, q, given), operand=where)
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
            return Failure((OPERANDS, 1 + index), family, plain_wording(*problem), operand=index)
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
        if slot.name in places and not meets_target(target, needs):
            message = f"'.{q[slot.name]}' needs {describe(needs)}; the target is {target}"
            return Failure(rank, family, plain_wording(message), places[slot.name])
    for arg, index in binding:
        if not meets_target(target, arg.needs):
            message = f"'{arg.name}' needs {describe(arg.needs)}; the target is {target}"
            return Failure(rank, family, plain_wording(message), operand=index)
    for requirement in variant.requirements:
        if requirement.test(q) and not meets_target(target, requirement.needs):
            part = q.get(requirement.slot, "")
            message = f"'.{part}' here needs {describe(requirement.needs)}; the target is {target}"
            return Failure(rank, family, plain_wording(message), places.get(requirement.slot, 0))
    needs = variant.needs or family.needs
    if not meets_target(target, needs):
        name = f"{family.name} ({variant.name})" if variant.needs and variant.name else family.name
        return Failure(rank, family, plain_wording(f"'{name}' needs {describe(needs)}; the target is {target}"), 0)
    return None
