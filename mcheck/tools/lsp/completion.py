"""Completion: instructions, qualifiers, names and keywords."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcheck.base.records import dataclass
from mcheck.frontend.litmus.scope import SPECIALS
from mcheck.isa.families import DIALECT, ptx_families
from mcheck.isa.schema import Variant
from mcheck.isa.wording import slot_words
from mcheck.tools.lsp.symbols import Symbol

_STATEMENT = re.compile(r"[;{}|]")
_LEAD = re.compile(r"(?:\s*(?:@!?%?[\w$]+|[A-Za-z_$][\w$]*:(?!:)|await)\s+)*\s*", re.ASCII)
_OPCODE = re.compile(r"[a-z][\w.:]*", re.ASCII)
_WORD = re.compile(r"[A-Za-z_$%.][\w$.:]*\Z|\Z", re.ASCII)
_CAT_WORD = re.compile(r"_?[A-Za-z][\w.\-]*\Z|\Z", re.ASCII)
DIRECTIVES = (".global", ".shared", ".const", ".param", ".reg", ".align", ".tensormap", "const")
EXPECTED = ("pass", "fail", "clean", "race", "undefined", "deadlock")
CONTROL = ("for", "if", "await", "const", "def", "include", ".reg")
CAT_WORDS = ("let", "rec", "and", "acyclic", "irreflexive", "empty", "flag", "include", "procedure", "call", "as")


@dataclass(frozen=True, slots=True)
class Item:
    """A completion: ``text`` replaces the last ``length`` characters before the cursor; ``kind``: instruction,
    qualifier, word or the kind of a symbol.
    """

    text: str
    kind: str
    detail: str = ""
    length: int = 0


def complete(line: str, path: str, defined: tuple[Symbol, ...]) -> tuple[Item, ...]:
    """Completions at the end of ``line``, the text of a line before the cursor."""
    if path.endswith(".cat"):
        return tuple(_of_model(line, defined))
    found = dict.fromkeys(_of_test(line, defined))
    return tuple({item.text: item for item in reversed(found)}.values())[::-1]


def _of_model(line: str, defined: tuple[Symbol, ...]) -> Iterator[Item]:
    from mcheck.cat.names import BASE

    typed = _CAT_WORD.search(line)
    start = typed[0] if typed else ""
    rows = [(name, "let", "") for name in dict.fromkeys(s.name for s in defined if s.kind == "let")]
    rows += [(row.name, row.kind.value, row.doc) for row in BASE.values()]
    rows += [(word, "word", "") for word in CAT_WORDS]
    for text, kind, detail in rows:
        if text.startswith(start):
            yield Item(text, kind, detail, len(start))


def _of_test(line: str, defined: tuple[Symbol, ...]) -> Iterator[Item]:
    expect = re.match(r"\s*expect\s+(?:\w+\s*\|\s*)*(\w*)\Z", line)
    if expect is not None:
        yield from (Item(word, "word", "", len(expect[1])) for word in EXPECTED if word.startswith(expect[1]))
        return
    statement = _STATEMENT.split(line)[-1]
    lead = _LEAD.match(statement)
    body = statement[lead.end() :] if lead else statement
    if not body or _OPCODE.fullmatch(body):
        yield from complete_opcode(body)
        if "." not in body:
            yield from (Item(word, "word", "", len(body)) for word in CONTROL if word.startswith(body))
        return
    typed = _WORD.search(line)
    start = typed[0] if typed else ""
    if start.startswith("%"):
        yield from (
            Item(f"%{name}", "register", "", len(start)) for name in sorted(SPECIALS) if name.startswith(start[1:])
        )
        return
    if start.startswith("."):
        yield from (Item(word, "word", "", len(start)) for word in DIRECTIVES if word.startswith(start))
        return
    for symbol in defined:
        if symbol.kind not in ("condition", "include") and symbol.name.startswith(start):
            yield Item(symbol.name, symbol.kind, symbol.owner, len(start))


def complete_opcode(typed: str) -> Iterator[Item]:
    """Completions of an opcode: the next part of an instruction name, or a qualifier that is legal there."""
    *before, last = typed.split(".")
    given = tuple(before)
    for family in (*ptx_families(), *DIALECT):
        head = family.head
        if len(given) < len(head):
            if head[: len(given)] == given and head[len(given)].startswith(last):
                yield Item(
                    head[len(given)], "instruction", family.title if len(head) == len(given) + 1 else "", len(last)
                )
        elif given[: len(head)] == head:
            for variant in family.variants:
                for value, slot in _next(variant, given[len(head) :]):
                    if value.startswith(last):
                        yield Item(value, "qualifier", slot_words(slot), len(last))


def _next(variant: Variant, given: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """The qualifiers that may follow ``given``, with the names of their slots, by the rules of the matcher."""
    filled: set[str] = set()
    last: dict[str, int] = {}
    for part in given:
        for index, slot in enumerate(variant.slots):
            if part in slot.values and slot.name not in filled and index > last.get(slot.kind, -1):
                filled.add(slot.name)
                if slot.kind:
                    last[slot.kind] = index
                break
        else:
            return
    for index, slot in enumerate(variant.slots):
        if slot.name not in filled and index > last.get(slot.kind, -1):
            yield from ((value, slot.name) for value in slot.values)
