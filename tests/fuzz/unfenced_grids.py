"""Random grids without fences, as modules and as interleavings:

    python -m tests.fuzz.unfenced_grids --programs 100 --seed 1

The one thread of each CTA draws numbers, adds, loads and stores, some of it only if it has drawn or found a number, or
at a slot of that number. One answer is that of mcheck. The other one shares nothing with it: it runs the CTAs in random
orders, and looks for accesses of two of them that race. A finding about a grid that has none is wrong, and so is a
proof of one that has.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from mcheck.ptx import check
from tests.fuzz.judged_answers import compare_judged, judged

WORDS, SLOTS, REGISTERS = 4, 8, 2
"""Words of counters, slots of 4 bytes behind them, and registers of a thread."""
ORDERS, MORE_ORDERS = 60, 3000
"""In how many orders a program is run, and in how many before a finding is wrong."""

Op = tuple[Any, ...]


@dataclass(frozen=True)
class Program:
    """What each CTA does."""

    ctas: int
    body: tuple[Op, ...]


def generate(rng: random.Random) -> Program:
    """A program of which about half are right."""
    first = [("draw", rng.choice(sorted(DRAWS)), rng.randrange(WORDS), rng.randrange(REGISTERS), "gpu")]
    return Program(rng.randint(2, 3), (*first, *_body(rng, 0, rng.randint(1, 4))))


def _body(rng: random.Random, depth: int, count: int) -> Iterator[Op]:
    for _ in range(count):
        word, register = rng.randrange(WORDS), rng.randrange(REGISTERS)
        scope = rng.choice(("gpu", "gpu", "gpu", "sys", "cta"))
        kinds = ["draw", "draw", "red", "load", "slot", "own", "hand"]
        kinds += ["if"] * 5 if depth == 0 else ["store", "store", "slot"] + ["if"] * (2 - depth)
        match rng.choice(kinds):
            case "draw":
                yield "draw", rng.choice(("add", "exch", "cas", "max")), word, register, scope
            case "red":
                yield "red", word, scope
            case "load":
                yield "load", word, register, rng.choice(("weak", "relaxed.gpu", "relaxed.cta", "volatile"))
            case "store":
                yield "store", word, rng.choice(("weak", "weak", "relaxed.gpu", "relaxed.cta", "volatile"))
            case "slot":
                yield "slot", register
            case "own":
                yield ("own",)
            case "hand":
                yield "hand", register
            case "if":
                yield "if", register, rng.choice((0, 0, 1, 7)), tuple(_body(rng, depth + 1, rng.randint(1, 2)))


# --- the module -------------------------------------------------------------------------------------------------------

DRAWS = {
    "add": "atom.relaxed.{}.global.add.u32 %v{}, [%words + {}], 1;",
    "exch": "atom.relaxed.{}.global.exch.b32 %v{}, [%words + {}], 7;",
    "cas": "atom.relaxed.{}.global.cas.b32 %v{}, [%words + {}], 0, 1;",
    "max": "atom.relaxed.{}.global.max.u32 %v{}, [%words + {}], 1;",
}


def write(program: Program) -> str:
    """The module."""
    lines = list(_lines(program.body, iter(range(1000))))
    body = "\n".join(f"  {line}" for line in lines)
    return f""".version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 words)
{{
  .reg .pred %p;
  .reg .b32 %v<{REGISTERS}>, %cta;
  .reg .b64 %words, %at;
  .shared .b32 handed;
  ld.param.u64 %words, [words];
  mov.u32 %cta, %ctaid.x;
  mov.u32 %v0, 0;
  mov.u32 %v1, 0;
{body}
  ret;
}}
"""


def _lines(body: tuple[Op, ...], labels: Iterator[int]) -> Iterator[str]:
    for op in body:
        match op:
            case ("draw", name, word, register, scope):
                yield DRAWS[name].format(scope, register, 4 * word)
            case ("red", word, scope):
                yield f"red.relaxed.{scope}.global.add.u32 [%words + {4 * word}], 1;"
            case ("load", word, register, strength):
                yield f"ld.{strength}.global.u32 %v{register}, [%words + {4 * word}];"
            case ("store", word, strength):
                yield f"st.{strength}.global.u32 [%words + {4 * word}], 1;"
            case ("slot", register):
                yield f"and.b32 %v{register}, %v{register}, {SLOTS - 1};"
                yield f"mad.wide.u32 %at, %v{register}, 4, %words;"
                yield f"st.global.u32 [%at + {4 * WORDS}], 1;"
            case ("own",):
                yield "mad.wide.u32 %at, %cta, 4, %words;"
                yield f"st.global.u32 [%at + {4 * WORDS}], 1;"
            case ("hand", register):
                yield f"st.shared.u32 [handed], %v{register};"
                yield f"ld.shared.u32 %v{1 - register}, [handed];"
            case ("if", register, value, inner):
                label = next(labels)
                yield f"setp.ne.u32 %p, %v{register}, {value};"
                yield f"@%p bra L{label};"
                yield from _lines(inner, labels)
                yield f"L{label}:"


def answer(program: Program) -> str:
    """``proved``, the codes of what is found, or the verdict."""
    size = 4 * (WORDS + SLOTS)
    given = {"grid": program.ctas, "block": 1, "params": {"words": {"buffer": size, "init": {"hex": "00" * size}}}}
    found = check(write(program), given, cpu_timeout=20.0)
    return " ".join(sorted({one.code for one in found.findings})) or str(found.verdict)


# --- the interleavings ------------------------------------------------------------------------------------------------

Access = tuple[int, int, bool, bool]
"""Whose, at which word, whether it writes, and whether it is strong at a scope of the grid."""


def _run(program: Program, rng: random.Random) -> bool:
    """Whether accesses of two CTAs race in a random order."""
    memory, accesses = [0] * (WORDS + SLOTS), set[Access]()
    running = [_steps(program.body, k, memory, accesses) for k in range(program.ctas)]
    sticky = rng.random()
    now = rng.choice(running)
    while running:
        if now not in running or rng.random() > sticky:
            now = rng.choice(running)
        if next(now, None) is None:
            running.remove(now)
    return any(
        a[0] != b[0] and a[1] == b[1] and (a[2] or b[2]) and not (a[3] and b[3]) for a in accesses for b in accesses
    )


def _steps(body: tuple[Op, ...], cta: int, memory: list[int], accesses: set[Access]) -> Iterator[bool]:
    """Do what a CTA does, an access at a time."""
    held = [0] * REGISTERS
    handed = 0

    def do(body: tuple[Op, ...]) -> Iterator[bool]:
        nonlocal handed
        for op in body:
            match op:
                case ("draw", name, word, register, scope):
                    old = held[register] = memory[word]
                    memory[word] = {"add": old + 1, "exch": 7, "cas": old or 1, "max": max(old, 1)}[name]
                    accesses.add((cta, word, True, scope != "cta"))
                case ("red", word, scope):
                    memory[word] += 1
                    accesses.add((cta, word, True, scope != "cta"))
                case ("load", word, register, strength):
                    held[register] = memory[word]
                    accesses.add((cta, word, False, strength in ("relaxed.gpu", "volatile")))
                case ("store", word, strength):
                    memory[word] = 1
                    accesses.add((cta, word, True, strength in ("relaxed.gpu", "volatile")))
                case ("slot", register):
                    held[register] %= SLOTS
                    memory[WORDS + held[register]] = 1
                    accesses.add((cta, WORDS + held[register], True, False))
                case ("own",):
                    memory[WORDS + cta] = 1
                    accesses.add((cta, WORDS + cta, True, False))
                case ("hand", register):
                    held[1 - register] = held[register]
                    continue
                case ("if", register, value, inner):
                    if held[register] == value:
                        yield from do(inner)
                    continue
            yield True

    return do(body)


def judge(program: Program, orders: int = ORDERS) -> str:
    """``fine``, or ``race``: by random orders of what the CTAs do."""
    rng = random.Random(1)
    return "race" if any(_run(program, rng) for _ in range(orders)) else "fine"


def judge_long(program: Program) -> str:
    """The same, by many orders where a few show no race."""
    return judge(program) if judge(program) == "race" else judge(program, MORE_ORDERS)


def is_wrong(found: str, right: str) -> bool:
    """Whether an answer says of a grid that it races, or does not, which is not so."""
    return right != "fine" if found == "proved" else found.startswith("RACE") and right == "fine"


def main() -> int:
    """Compare the answers about random grids."""
    return compare_judged(__doc__, partial(judged, generate, answer, judge_long), is_wrong)


if __name__ == "__main__":
    sys.exit(main())
