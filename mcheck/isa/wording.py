"""Error messages for illegal instructions: what is wrong, what is legal there, and what was probably meant."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache

from mcheck.base.records import dataclass, replace
from mcheck.isa import operands
from mcheck.isa.families import DIALECT, ptx_families
from mcheck.isa.schema import Arg, Family, Qualifiers, Rule, Slot, Variant


@dataclass(frozen=True, slots=True)
class Wording:
    """``expected`` are alternatives, in the order in which they are listed."""

    message: str
    expected: tuple[str, ...] = ()
    hint: str | None = None

    @property
    def legal(self) -> str | None:
        """The alternatives in one line."""
        return join_alternatives(self.expected) or None


def plain_wording(message: str, *expected: str) -> Callable[[], Wording]:
    """A wording that is known already."""
    return lambda: Wording(message, expected)


def join_alternatives(items: Sequence[str]) -> str:
    """``a, b or c``."""
    return ", ".join(items[:-1]) + (" or " if len(items) > 1 else "") + items[-1] if items else ""


def merge_wordings(wordings: Sequence[Wording]) -> Wording:
    """One wording for several failures of the same rank: the first message, with every alternative to it."""
    first = wordings[0]
    same = [wording for wording in wordings if wording.message == first.message]
    expected = dict.fromkeys(item for wording in same for item in wording.expected)
    hint = next((wording.hint for wording in same if wording.hint), None)
    return replace(first, expected=tuple(expected), hint=hint)


def suggest(near: Sequence[str]) -> str | None:
    """The hint for a misspelt word."""
    return f"did you mean '{near[0]}'?" if near else None


_MANY = 9
"""So many values of one slot are listed in full; of more only the kind is named."""


def _dots(values: Iterable[str]) -> tuple[str, ...]:
    return tuple("." + value for value in values)


def _slot(slot: Slot) -> tuple[str, ...]:
    """The values of a slot, abridged if they are too many to read."""
    if len(slot.values) <= _MANY:
        return _dots(slot.values)
    return (f"a {slot_words(slot.name)} (.{slot.values[0]} … .{slot.values[-1]})",)


def slot_words(name: str) -> str:
    """The name of a slot as one says it."""
    return name.replace("_", " ")


def explain_wrong_part(
    family: Family, variant: Variant, opcode: Sequence[str], position: int, q: Qualifiers
) -> Wording:
    """The message for an opcode part that fits no free slot."""
    part = opcode[position]
    holder = next((slot for slot in variant.slots if part in slot.values), None)
    if holder is not None:
        return _misplaced(variant, holder, part, q)
    others = [slot for other in family.variants for slot in other.slots]
    known = dict.fromkeys(value for slot in others for value in slot.values)
    free = [slot for slot in variant.slots if slot.name not in q]
    if part in known:
        before = opcode[len(family.head) : position]
        beside = f" with '.{'.'.join(before)}'" if before else ""
        expected = tuple(item for slot in free for item in _slot(slot))
        return Wording(f"'.{part}' is not legal in '{family.name}'{beside}", expected, _company(family, part, q))
    import difflib  # only errors need it

    message = f"'.{part}' is not a qualifier of '{family.name}'"
    near = difflib.get_close_matches(part, list(known), n=1, cutoff=0.6)
    if near:
        meant = next(slot for slot in (*free, *others) if near[0] in slot.values)
        values = _dots(meant.values) if len(meant.values) <= 2 * _MANY else ()
        return Wording(message, values, suggest(["." + near[0]]))
    longer = _longer(tuple(opcode[:position]))
    near = difflib.get_close_matches(part, longer, n=1, cutoff=0.6)
    if near:
        return Wording(message, _dots(longer), suggest(["." + near[0]]))
    same = dict.fromkeys(value for slot in others if part in roles(slot.name) for value in slot.values)
    if same:
        return Wording(message, _dots(same))
    return Wording(message, (*_dots(longer), *(item for slot in free for item in _slot(slot))))


@cache
def _longer(head: tuple[str, ...]) -> tuple[str, ...]:
    """What may follow ``head`` in the names of instructions."""
    return tuple(
        sorted({f.head[len(head)] for f in ptx_families() if len(f.head) > len(head) and f.head[: len(head)] == head})
    )


@cache
def roles(name: str) -> frozenset[str]:
    """Every value that a slot of this name takes anywhere: what ``.acquire`` is, even where it is illegal."""
    families = (*ptx_families(), *DIALECT)
    slots = (slot for family in families for variant in family.variants for slot in variant.slots)
    return frozenset(value for slot in slots if slot.name == name for value in slot.values)


def _misplaced(variant: Variant, holder: Slot, part: str, q: Qualifiers) -> Wording:
    """The message for a part that is legal in this variant, but not here."""
    there = q.get(holder.name)
    if there == part:
        return Wording(f"'.{part}' is given twice")
    if there is not None:
        return Wording(f"'.{part}' cannot be combined with '.{there}': give only one {slot_words(holder.name)}")
    index = variant.slots.index(holder)
    later = [slot for slot in variant.slots[index + 1 :] if slot.name in q and (slot.kind == holder.kind)]
    before = q[later[0].name] if later else next(iter(q.values()), "")
    return Wording(f"'.{part}' must come before '.{before}'")


def _company(family: Family, part: str, q: Qualifiers) -> str | None:
    """A hint with the qualifiers that the part is legal with, if those given are not among them."""
    for other in family.variants:
        if not any(part in slot.values for slot in other.slots):
            continue
        by_name = {slot.name: slot for slot in other.slots}
        wanted = [by_name[name] for name, value in q.items() if name in by_name and value not in by_name[name].values]
        if wanted:
            return f"'.{part}' goes with " + " and ".join(join_alternatives(_dots(slot.values)) for slot in wanted)
    return None


def explain_missing(opcode: Sequence[str], slot: Slot) -> Wording:
    """The message for a missing required qualifier."""
    values = _dots(slot.values) if len(slot.values) <= 2 * _MANY else _slot(slot)
    return Wording(f"'{'.'.join(opcode)}' is missing its {slot_words(slot.name)}", values)


def explain_broken_rule(rule: Rule, q: Mapping[str, str]) -> Wording:
    """The message for a combination of qualifiers that the table forbids."""
    expected = rule.expected(q) if callable(rule.expected) else rule.expected
    return Wording(rule.message.format_map(q), (expected,) if expected else ())


def explain_operand_count(variant: Variant, opcode: Sequence[str], q: Qualifiers, given: int) -> Wording:
    """The message for a wrong number of operands."""
    wanted = [arg for arg in variant.args if arg.when is None or arg.when(q)]
    required = sum(not arg.optional for arg in wanted)
    legal = str(required) if required == len(wanted) else f"{required} to {len(wanted)}"
    message = f"'{'.'.join(opcode)}' takes {legal} operand{'s' * (legal != '1')}, {given} given"
    hint = _conditional(variant, q) if given > len(wanted) else None
    return Wording(message, (", ".join(_described(arg, q) for arg in wanted) or "no operands",), hint)


def _described(arg: Arg, q: Qualifiers) -> str:
    text = operands.describe(arg, q)
    return "{" + text + "}" if arg.optional else text


def _conditional(variant: Variant, q: Qualifiers) -> str | None:
    """Which further operand there could be, and the qualifier that it needs."""
    for arg in variant.args:
        if arg.when is None or arg.when(q):
            continue
        for slot in variant.slots:
            for value in slot.values if slot.name not in q else ():
                if arg.when({**q, slot.name: value}):
                    return f"'{arg.name}' needs '.{value}'"
    return None
