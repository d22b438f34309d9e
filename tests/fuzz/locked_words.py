"""Two words of 64 bits that CTAs change under a lock, and what they do by the value that they find there.

A part of the random grids of ``tests.fuzz.locked_grids``, as PTX and as steps of a thread. A word is accessed as a
whole, as a vector of its halves, in one half, or by an update.
"""

from __future__ import annotations

import operator
import random
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass

WORDS = 48
"""Where the words begin among the locks, in bytes."""
HALF = 1 << 32
UPDATES: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: (a + b) % HALF**2,
    "max": max,
    "or": operator.or_,
    "exch": lambda _, b: b,
}
TESTS: dict[str, Callable[[int, int], bool]] = {"eq": operator.eq, "ne": operator.ne, "ge": operator.ge}
ASKS = ("whole", "vector", "low", "high", "relaxed", "returns")
CHANGES = ("whole", "vector", "low", "high", "once more", *UPDATES)


@dataclass(frozen=True)
class Words:
    """What thread 0 of a CTA does with the words between the taking of its lock and the release."""

    changes: tuple[tuple[tuple[str, int, int], ...], ...]
    """By the number of a CTA modulo their number: how it changes which word, with which value."""
    asks: str = "whole"
    """How CTAs load word ``asked`` after that: those of the kind ``asker``, or all (-1)."""
    asked: int = 0
    asker: int = -1
    test: str = "ge"
    bound: int = 2
    """The test of what they have found; those of which it is true do what ``Plan.found`` says."""


RIGHT = {
    "a value that nobody leaves": Words(((("whole", 0, 1),),)),
    "halves of a word": Words(((("low", 0, 1), ("high", 1, 1)),), asks="low"),
    "a vector": Words(((("vector", 0, 1),),), asks="vector", bound=HALF),
    "a maximum": Words(((("max", 0, 1),), (("max", 0, 2),)), bound=3),
    "the other word": Words(((("max", 0, 1),),), asks="whole", asked=1, test="ne", bound=0),
}


def generate(rng: random.Random) -> Words:
    """Random changes of the words."""
    kinds = [
        tuple(
            (rng.choice(CHANGES), rng.choice([0, 0, 1]), rng.choice([0, 1, 1, 2]))
            for _ in range(rng.choice([0, 1, 1, 2]))
        )
        for _ in range(rng.choice([1, 1, 2, 3]))
    ]
    asker = rng.choice([-1, rng.randrange(len(kinds))])
    if rng.random() < 0.4:  # who asks changes nothing
        kinds.append(())
        asker = len(kinds) - 1
    asked, test, bound = rng.choice([0, 0, 1]), rng.choice([*TESTS]), rng.choice([1, 2, 2, 3])
    return Words(tuple(kinds), rng.choice(ASKS), asked, asker, test, bound)


# --- as PTX: the predicate %p of thread 0 says what it has found ------------------------------------------------------


def write(words: Words, name: str) -> Iterator[str]:
    """The lines of all threads; labels have a name."""
    yield from ("setp.ne.u32 %p, %r1, %r1;", f"@!%z bra ASKED{name};", f"rem.u32 %r30, %r1, {len(words.changes)};")
    for kind, changes in enumerate(words.changes):
        yield from (f"setp.ne.u32 %q, %r30, {kind};", f"@%q bra CHANGED{name}_{kind};")
        for change in changes:
            yield from _write_change(*change)
        yield f"CHANGED{name}_{kind}:"
    if words.asker >= 0:
        yield from (f"setp.ne.u32 %q, %r30, {words.asker};", f"@%q bra ASKED{name};")
    yield from _write_asking(words.asks, words.asked)
    yield from (f"setp.{words.test}.u64 %p, %a14, {words.bound};", f"ASKED{name}:")


def _write_change(how: str, word: int, value: int) -> Iterator[str]:
    at = f"%a2 + {WORDS + 8 * word}"
    match how:
        case "low" | "high":
            yield f"st.global.u32 [{at} + {4 * (how == 'high')}], {value};"
        case "vector":
            yield from (f"mov.u32 %r31, {value};", f"st.global.v2.u32 [{at}], {{%r31, 0}};")
        case "whole":
            yield f"st.global.u64 [{at}], {value};"
        case "once more":
            yield from (f"ld.global.u64 %a15, [{at}];", f"add.u64 %a15, %a15, {value};", f"st.global.u64 [{at}], %a15;")
        case "exch":
            yield f"atom.relaxed.gpu.global.exch.b64 %a15, [{at}], {value};"
        case _:
            yield f"red.relaxed.gpu.global.{how}.{'b64' if how == 'or' else 'u64'} [{at}], {value};"


def _write_asking(how: str, word: int) -> Iterator[str]:
    at = f"%a2 + {WORDS + 8 * word}"
    match how:
        case "low" | "high":
            yield from (f"ld.global.u32 %r31, [{at} + {4 * (how == 'high')}];", "cvt.u64.u32 %a14, %r31;")
        case "vector":
            yield from (f"ld.global.v2.u32 {{%r31, %r32}}, [{at}];", "mov.b64 %a14, {%r31, %r32};")
        case "returns":
            yield f"atom.relaxed.gpu.global.add.u64 %a14, [{at}], 1;"
        case _:
            yield f"ld.{'relaxed.gpu.' if how == 'relaxed' else ''}global.u64 %a14, [{at}];"


# --- as steps of a thread ---------------------------------------------------------------------------------------------


def steps(words: Words, cta: int, found: Callable[[], int]) -> Generator[tuple[str, ...], None, bool]:
    """The steps of thread 0; ``found`` says what the last one has returned. Returns whether the test is true."""
    kind = cta % len(words.changes)
    for how, word, value in words.changes[kind]:
        halves = {"low": f"low{word}", "high": f"high{word}"}
        if how in halves:
            yield "store", halves[how], str(value)
        elif how in UPDATES:
            yield "update", *halves.values(), how, str(value)
        else:
            if how == "once more":
                for half in halves.values():
                    yield "load", half
                    value += found() << 32 * (half == halves["high"])
            yield "store", halves["low"], str(value % HALF)
            yield "store", halves["high"], str(value // HALF % HALF)
    if words.asker not in (-1, kind):
        return False
    if words.asks == "returns":
        yield "update", f"low{words.asked}", f"high{words.asked}", "add", "1"
        return TESTS[words.test](found(), words.bound)
    value = 0
    for half in ("low", "high"):
        if words.asks in (half, "whole", "vector", "relaxed"):
            strong = words.asks == "relaxed"
            yield ("ask", f"{half}{words.asked}", "relaxed.gpu") if strong else ("load", f"{half}{words.asked}")
            value += found() << 32 * (half == "high" and words.asks != half)
    return TESTS[words.test](value, words.bound)
