"""Instructions to ask about: every variant of the table, and its illegal neighbours.

A neighbour has one thing changed: a qualifier dropped, doubled, moved, replaced by one from elsewhere or misspelt; an
operand dropped, added or of another kind; a constant out of bounds. What either side says about it is left open.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Iterator, Mapping, Sequence

from mcheck.ir.expr import Const, Expr, Name, Reg
from mcheck.isa.families import ptx_families
from mcheck.isa.instruction import Address, Operand, Value, Vector
from mcheck.isa.operands import type_of
from mcheck.isa.schema import Arg, Family, Slot, Variant
from tests.isa.agreement import matrix, tensor_memory
from tests.isa.agreement.sample import (
    OBJECTS,
    SINK,
    Line,
    Sample,
    constant,
    memory,
    named,
    negated,
    pair,
    reg,
    vector,
)


def prefix_for(type_name: str, wide: bool = False) -> str:
    """The register family that holds a type."""
    if type_name == "pred":
        return "p"
    if type_name in ("f32", "f64"):
        return {"f32": "ff", "f64": "fd"}[type_name]
    if type_name in ("f16x2", "bf16x2", "tf32", "e4m3x4", "e5m2x4"):
        return "r"
    bits = 16 if type_name in ("f16", "bf16", "e4m3x2", "e5m2x2") else int(type_name[1:] or 32)
    if bits == 8:
        return "rs" if wide else "r"
    return {16: "rs", 32: "r", 64: "rd", 128: "rq"}[bits]


def _scalar(arg: Arg, type_name: str, number: int) -> Sample:
    match arg.kind:
        case "imm" | "literal":
            return constant(arg.values[0] if arg.values else arg.low or 0)
        case "pred" | "predname" | "pair" | "wait":
            return reg("p", number)
        case "elect" | "result":
            return pair(reg("r", number), reg("p", number))
        case "sink":
            return SINK
        case "mem":
            return memory(reg("rd", number))
        case "label":
            return Sample("L0", Value(Name("L0")))
        case "src" if arg.low is not None:
            return constant(arg.low)
    return reg(prefix_for(type_name, arg.wide), number)


def sample(arg: Arg, q: Mapping[str, str], number: int) -> Sample:
    """A legal operand for ``arg``."""
    count = arg.count(q) if arg.count is not None else None
    type_name = type_of(arg, q)
    if arg.kind == "tensor":
        inner = (sample(one, q, number + 20) for one in arg.given(q))
        return memory(reg("rd", number), *inner, vector([reg("r", number + i) for i in range(count or 0)]))
    if count is not None:
        return vector([_scalar(arg, type_name, number + i) for i in range(count)])
    return _scalar(arg, type_name, number)


def _arguments(variant: Variant, q: Mapping[str, str], optional: int) -> tuple[Sample, ...]:
    """Legal operands, with the first ``optional`` of the optional ones."""
    made: list[Sample] = []
    for arg in variant.args:
        if arg.when is not None and not arg.when(q):
            continue
        if arg.optional:
            if not optional:
                continue
            optional -= 1
        made.append(sample(arg, q, 8 * len(made) + 1))
    return tuple(made)


# --- spellings ----------------------------------------------------------------------------------------

Choice = tuple[str | None, ...]
"""One value, or nothing, for every slot of a variant."""


def _values(slot: Slot) -> tuple[str | None, ...]:
    return (None, *slot.values) if slot.optional else slot.values


def _legal(variant: Variant, choice: Choice) -> dict[str, str] | None:
    """The qualifiers of a choice if the rules of the variant allow them."""
    q = {slot.name: value for slot, value in zip(variant.slots, choice, strict=True) if value is not None}
    return q if all(rule.test(q) for rule in variant.rules) else None


def _base(variant: Variant) -> Choice:
    """The first legal choice, counting up from the simplest one."""
    for choice in itertools.product(*(_values(slot) for slot in variant.slots)):
        if _legal(variant, choice) is not None:
            return choice
    raise AssertionError(variant)


def choices(variant: Variant, limit: int, seed: int) -> list[Choice]:
    """All choices if they are few, else those that differ from the base in one slot or two, up to ``limit``."""
    everything = [_values(slot) for slot in variant.slots]
    total = 1
    for values in everything:
        total *= len(values)
    if total <= limit:
        return list(itertools.product(*everything))
    base = _base(variant)
    found: dict[Choice, None] = {base: None}
    for index, values in enumerate(everything):
        for value in values:
            found[(*base[:index], value, *base[index + 1 :])] = None
    combined: dict[Choice, None] = {}
    for (i, first), (j, second) in itertools.combinations(enumerate(everything), 2):
        for a, b in itertools.product(first, second):
            changed = list(base)
            changed[i], changed[j] = a, b
            combined[tuple(changed)] = None
    rest = [choice for choice in combined if choice not in found]
    random.Random(seed).shuffle(rest)
    return [*found, *rest[: max(0, limit - len(found))]]


def _spell(family: Family, choice: Sequence[str | None]) -> tuple[str, ...]:
    return (*family.head, *(value for value in choice if value is not None))


def variant_lines(family: Family, variant: Variant, limit: int) -> Iterator[Line]:
    """The spellings of a variant with operands to match, illegal combinations of qualifiers among them."""
    options = sum(1 for arg in variant.args if arg.optional)
    for number, choice in enumerate(choices(variant, limit, seed=len(family.name))):
        q = {slot.name: value for slot, value in zip(variant.slots, choice, strict=True) if value is not None}
        for optional in range(options + 1) if number < 8 else (number % (options + 1),):
            yield Line(_spell(family, choice), _arguments(variant, q, optional), family.name, "variant")


FOREIGN = (
    "gpu", "cluster", "relaxed", "acquire", "release", "weak", "volatile", "global", "shared::cta", "shared::cluster",
    "b64", "u32", "f32", "v2", "tile", "L2::cache_hint", "mbarrier::complete_tx::bytes", "bulk_group",
    "multicast::cluster", "sync", "aligned", "read", "noinc", "add", "parity", "expect_tx", "sys", "cta",
)  # fmt: skip
"""Qualifiers that mean something elsewhere."""


def qualifier_neighbours(
    family: Family, opcode: tuple[str, ...], picks: random.Random
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Opcodes with one qualifier dropped, doubled, moved, replaced, inserted or misspelt."""
    start = len(family.head)
    for index in range(start, len(opcode)):
        before, part, after = opcode[:index], opcode[index], opcode[index + 1 :]
        yield "qualifier dropped", (*before, *after)
        yield "qualifier doubled", (*before, part, part, *after)
        yield "qualifier misspelt", (*before, part + "x", *after)
        for foreign in picks.sample(FOREIGN, 3):
            yield "foreign qualifier instead", (*before, foreign, *after)
        if after:
            yield "qualifiers exchanged", (*before, after[0], part, *after[1:])
    if len(opcode) - start > 2:
        yield "qualifiers reversed", (*family.head, *reversed(opcode[start:]))
    for foreign in picks.sample(FOREIGN, 4):
        yield "foreign qualifier added", (*opcode, foreign)


WRONG: tuple[Sample, ...] = (
    reg("p", 7),
    reg("rs", 7),
    reg("r", 7),
    reg("rd", 7),
    reg("rq", 7),
    reg("ff", 7),
    reg("fd", 7),
    constant(1),
    negated(7),
    memory(reg("rd", 7)),
    vector([reg("r", 7), reg("r", 8)]),
    SINK,
)
"""What may stand where it does not belong."""


def operand_neighbours(operands: tuple[Sample, ...]) -> Iterator[tuple[str, tuple[Sample, ...]]]:
    """Operand lists with one operand dropped, added, exchanged or of another kind."""
    for index, operand in enumerate(operands):
        before, after = operands[:index], operands[index + 1 :]
        yield "operand dropped", (*before, *after)
        if after:
            yield "operands exchanged", (*before, after[0], operand, *after[1:])
        for wrong in WRONG:
            yield "other operand", (*before, wrong, *after)
        if isinstance(operand.operand, Address):
            yield from (("object", (*before, _at(operand, named(name)), *after)) for name in OBJECTS)
        if isinstance(operand.operand, Vector) and len(operand.operand.items) > 1:
            shorter = [Sample(_text(item), item) for item in operand.operand.items[:-1]]
            yield "vector too short", (*before, vector(shorter), *after)
        if isinstance(operand.operand, Address) and len(operand.operand.items) == 2:
            yield from _coordinate_neighbours(before, operand.operand, after)
    for extra in (reg("r", 9), reg("rd", 9), reg("p", 5), constant(1)):
        yield "operand added", (*operands, extra)


def _at(operand: Sample, place: Sample) -> Sample:
    """The memory operand with its address replaced by that of a named object."""
    assert isinstance(operand.operand, Address)
    assert isinstance(place.operand, Address)
    if len(operand.operand.items) == 1:
        return place
    _, *rest = operand.operand.items
    coordinates = operand.text.split(", ", 1)[1]
    return Sample(f"{place.text[:-1]}, {coordinates}", Address(place.operand.items[0], rest=tuple(rest)))


def _coordinate_neighbours(
    before: tuple[Sample, ...], operand: Address, after: tuple[Sample, ...]
) -> Iterator[tuple[str, tuple[Sample, ...]]]:
    address, coordinates = operand.items
    if not isinstance(coordinates, Vector):
        return
    base = Sample(_text(address), address)
    items = [Sample(_text(item), item) for item in coordinates.items]
    yield "coordinate added", (*before, memory(base, vector([*items, reg("r", 30)])), *after)
    yield "coordinate of another type", (*before, memory(base, vector([reg("rd", 30), *items[1:]])), *after)
    yield "constant coordinate", (*before, memory(base, vector([constant(0), *items[1:]])), *after)
    yield "no coordinates", (*before, memory(base), *after)
    if len(items) > 1:
        yield "coordinate dropped", (*before, memory(base, vector(items[1:])), *after)


def _text(operand: Operand) -> str:
    assert isinstance(operand, Value)
    return _expression(operand.expr)


def _expression(expr: Expr) -> str:
    match expr:
        case Reg():
            return expr.name
        case Const():
            return str(expr.value)
        case Name():
            return expr.name
    raise AssertionError(expr)


def constants(variant: Variant, q: Mapping[str, str], operands: tuple[Sample, ...]) -> Iterator[tuple[Sample, ...]]:
    """Operand lists with a constant at or beyond the bounds of an argument."""
    wanted = [arg for arg in variant.args if (arg.when is None or arg.when(q)) and not arg.optional]
    if len(wanted) != len(operands):
        return
    for index, arg in enumerate(wanted):
        if not arg.values and arg.low is None:
            continue
        tried = {0, 1, 3, 4, 8, 15, 16, 17, 32, 128, 129, 256, *arg.values}
        for bound in (arg.low, arg.high):
            if bound is not None and bound < 2**20:
                tried |= {bound, bound + 1, bound - 1}
        for value in sorted(tried):
            if value >= 0:
                yield (*operands[:index], constant(value), *operands[index + 1 :])


def family_lines(family: Family, limit: int, bases: int) -> Iterator[Line]:
    """Everything to ask about one family."""
    picks = random.Random(family.name)
    for variant in family.variants:
        yield from variant_lines(family, variant, limit)
        chosen = []
        for choice in choices(variant, limit, seed=len(family.name)):
            q = _legal(variant, choice)
            if q is not None:
                chosen.append((choice, q))
        picks.shuffle(chosen)
        full = max(chosen, key=lambda pair_: sum(value is not None for value in pair_[0]))
        for number, (choice, q) in enumerate([full, *chosen[: bases - 1]]):
            opcode = _spell(family, choice)
            operands = _arguments(variant, q, number % (1 + sum(arg.optional for arg in variant.args)))
            for change, other in qualifier_neighbours(family, opcode, picks):
                yield Line(other, operands, family.name, change)
            if number < 2:
                for change, others in operand_neighbours(operands):
                    yield Line(opcode, others, family.name, change)
                for others in constants(variant, q, operands):
                    yield Line(opcode, others, family.name, "constant")


UNASKED = re.compile(
    r"(ldmatrix\.|clusterlaunchcontrol\.query_cancel\.get_first_ctaid)\S* _,"
    r"|cp\.async\.bulk\.tensor\.\S*complete_tx::bytes (!?p7\b|.*!?p7$)"
    r"|cp\.async\.bulk\.\S*shared::cluster\.global\.\S* .*, 1$"
)
"""Lines at which the assembler crashes."""


def all_lines(limit: int = 220, bases: int = 4, families: Sequence[str] = ()) -> list[Line]:
    """The distinct lines over the whole table (or over the named families), always the same ones."""
    found: dict[str, Line] = {}
    for family in ptx_families():
        if families and family.name not in families:
            continue
        # Matrices are spelt in a way of their own.
        if family.name == matrix.NAME:
            asked = matrix.lines()
        elif family.name in tensor_memory.NAMES:
            asked = tensor_memory.lines(family.name)
        else:
            asked = family_lines(family, limit, bases)
        for line in asked:
            if not UNASKED.match(line.text):
                found.setdefault(line.text, line)
    return list(found.values())
