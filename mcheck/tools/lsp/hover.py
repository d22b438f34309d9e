"""Hover texts in Markdown: for instructions, codes of findings, and names."""

from __future__ import annotations

from collections.abc import Sequence

from mcheck.base.errors import InputError
from mcheck.findings import catalogue
from mcheck.isa.families import DIALECT, ptx_families
from mcheck.isa.operands import describe
from mcheck.isa.schema import Family, Slot, Variant
from mcheck.isa.targets import describe as described_targets
from mcheck.isa.wording import slot_words

MOST_FORMS = 6
MOST_VALUES = 12
OPCODE = r"[a-z][\w]*(?:\.[\w:]+)*"


def describe_instruction(opcode: str) -> str | None:
    """The description of an instruction, with the forms that match the qualifiers of the opcode."""
    parts = tuple(opcode.rstrip(":").split("."))
    family = find_family(parts)
    if family is None:
        return None
    rest = [part for part in parts[len(family.head) :] if part]
    variants = [v for v in family.variants if _takes(v, rest)] or list(family.variants)
    lines = [f"**{family.name}**: {family.title}", "", "```ptx"]
    lines += [_form(family, variant) for variant in variants[:MOST_FORMS]]
    if len(variants) > MOST_FORMS:
        lines.append(f"// and {len(variants) - MOST_FORMS} more forms")
    lines += ["```", ""]
    slots = {slot.name: slot for variant in variants for slot in variant.slots if len(slot.values) > 1}
    lines += [f"* `.{name}`: {_values(slot)}" for name, slot in slots.items()]
    facts = []
    if family.needs:
        facts.append(f"needs {described_targets(family.needs)}")
    completion = family.completion or next((v.completion for v in variants if v.completion), "")
    if completion:
        facts.append(f"asynchronous, completes by {completion}")
    if family.proxy != "generic":
        facts.append(f"{family.proxy} proxy")
    if facts:
        lines += ["", "; ".join(facts)]
    where = "table dialect" if family.dialect else "PTX ISA"
    lines += ["", f"{where}, section {family.section}" if not family.dialect else where]
    return "\n".join(lines)


def find_family(parts: Sequence[str]) -> Family | None:
    """The instruction family whose name is the longest prefix of an opcode."""
    found = [f for f in (*ptx_families(), *DIALECT) if tuple(parts[: len(f.head)]) == f.head]
    return max(found, key=lambda f: len(f.head), default=None)


def describe_code(code: str) -> str | None:
    """The description of the code of a finding."""
    try:
        entry = catalogue.get(code)
    except InputError:
        return None
    title = entry.name.replace("-", " ")
    return (
        f"**{entry.code}**: {title}\n\n{entry.explanation}\n\n*Fix.* {entry.all_remedies}\n\n"
        f"*After this finding* {entry.consequence}.\n\n{entry.section}"
    )


def describe_cat_name(name: str) -> str | None:
    """The description of a base set or relation of cat."""
    from mcheck.cat.names import BASE

    row = BASE.get(name)
    return f"**{row.name}** ({row.kind.value}): {row.doc}\n\n{row.section}" if row is not None else None


def quote_declaration(line: str) -> str:
    """The line that declares a name, as code."""
    return f"```ptx\n{line.strip()}\n```"


def _takes(variant: Variant, parts: Sequence[str]) -> bool:
    """Whether every part is a qualifier of some slot."""
    return all(any(part in slot.values for slot in variant.slots) for part in parts)


def _form(family: Family, variant: Variant) -> str:
    """The syntax of a variant: ``cp.async.bulk.dst.src.completion [dst], [src], size, [mbar];``."""
    name = family.name
    for slot in variant.slots:
        text = f".{slot.values[0]}" if len(slot.values) == 1 else f".{slot.name}"
        name += f"{{{text}}}" if slot.optional else text
    chosen = {slot.name: slot.default or slot.values[0] for slot in variant.slots}
    operands = []
    for arg in variant.args:
        if arg.when is None or arg.when(chosen):
            text = describe(arg, chosen)
            operands.append(f"{{{text}}}" if arg.optional else text)
    return f"{name} {', '.join(operands)};" if operands else f"{name};"


def _values(slot: Slot) -> str:
    shown = ", ".join(f"`.{value}`" for value in slot.values[:MOST_VALUES])
    more = f" and {len(slot.values) - MOST_VALUES} more" if len(slot.values) > MOST_VALUES else ""
    return f"{shown}{more} ({slot_words(slot.name)})"
