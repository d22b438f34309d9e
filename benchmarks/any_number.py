#!/usr/bin/env python3
"""Sketches of any number of rounds with random mistakes, held against the same ones with the number written out.

    python -m benchmarks.any_number [--programs N] [--seed S] [--first K] [--save FOLDER]

Item k of a seed is always the same. What is proved for every number has to be proved for each one that is tried, and a
code that is found with any number has to be found with one of them, unless it shows with larger ones. Prints a line per
contradiction, and one per answer that stays open though every number that is tried is proved, or one of them is wrong;
at the end how often which answers met. Exit status 1 on a contradiction.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

from mcheck.answers.result import Answer
from mcheck.base.errors import InputError
from mcheck.cat import load_model
from mcheck.checking.policy.ask import ask
from mcheck.checking.policy.question import Completeness, Question
from mcheck.frontend.litmus import parse
from tests.engines.protocol.followed import FOLLOWED
from tests.engines.protocol.handed_over import HANDED_OVER
from tests.engines.protocol.unbounded import GUARDED, IN_TURNS, PING_PONG, TENSOR, TILES, TWO_PIPELINES, gemm, ring

SKETCHES = (
    *map(ring, (1, 2, 3)), IN_TURNS, PING_PONG, TWO_PIPELINES, gemm(1), gemm(2), TENSOR, *GUARDED.values(),
    *TILES.values(), *HANDED_OVER.values(), *FOLLOWED.values(),
)  # fmt: skip
NUMBERS = (*range(15), 17, 20, 23, 30)
ANY, ONE = 10.0, 3.0
"""Seconds for all numbers, and for one."""
FEW_LANES = (("warp 1 {", "warp 1, lane 0..2 {"), ("[empty[s]], 32", "[empty[s]], 2"), ("[ek[s]], 32", "[ek[s]], 2"),
             ("[ev[s]], 32", "[ev[s]], 2"))  # fmt: skip
"""Fewer threads, where all that count them can be told."""
EXPRESSIONS: dict[str, tuple[str, ...]] = {
    r"k%S": ("(k+1)%S", "k%2", "0", "(2*k)%S", "(k-1+S)%S"),
    r"\(k/S\)%2": ("(k/2)%2", "k%2", "((k+1)/S)%2", "(k/S)%2^(k==9)", "0", "(k/S/2)%2", "(k/S + k/6)%2"),
    r"\(\(k/S\)%2\)\^1": ("(k/S)%2", "1", "(k==0)", "((k+1)/S)%2"),
    r"0\.\.N\b": ("1..N", "0..N-1", "0..N+1", "0..2*N", "0..N/2"),
    r"N\.\.N\+S": ("N..N+S-1", "N..N", "N..N+S+1"),
    r"(\[\w+\[s\]\]), (\d+)": (r"\1, \2+1", r"\1, \2-1"),
    r"_, (\[\w+\[k%S\]\]), (\d+)": (r"_, \1, \2-16", r"_, \1, \2+16*(k==11)", r"_, \1, \2*2"),
    r"wait_group(\.read)? (\d)": (r"wait_group\1 0", r"wait_group\1 1", r"wait_group\1 2"),
    r"k \+ S < N": ("k < N", "k + S <= N", "k + 1 < N"),
    r"k >= (S|1)": (r"k > \1", "k >= 0"),
    r"k%3": ("k%2", "(k+1)%3", "k%4", "k%3*(k<7)", "(k==6)"),
    r"k%2\b": ("(k+1)%2", "0", "k%3", "(k/2)%2", "(k%2)^(k==9)"),
    r"\(k\+1\)%2": ("k%2", "1", "(k+2)%2", "((k+1)%2)^(k==7)"),
    r"ld\.acquire": ("ld.relaxed",),
    r"st\.release": ("st.relaxed",),
    r"fence\.acq_rel\.gpu": ("fence.acq_rel.cta", "fence.sc.gpu"),
    r"\.gpu\.global": (".cta.global",),
    r"== (\d)\)": (r"!= \1)", "== 0)", "== 1)"),
    r"setp\.(eq|ne)\.u32": ("setp.eq.u32", "setp.ne.u32"),
    r"bar\.sync (\d), 64": (r"bar.arrive \1, 64", r"bar.sync \1, 96"),
}
CONDITIONS = ("k == 5", "k % 3 != 1", "k % 2 == 0", "k != 8", "k < 10", "k >= 2", "k + 1 < N", "k > 0", "k != N-1")
Mistake = Callable[[Random, list[str], int], list[str] | None]
"""The lines with a mistake at one of them, or nothing where there is no occasion for it."""


def drop(_random: Random, lines: list[str], at: int) -> list[str]:
    """An instruction is left out."""
    return lines[:at] + lines[at + 1 :]


def exchange(_random: Random, lines: list[str], at: int) -> list[str] | None:
    """Two instructions change places."""
    if not whole(lines, at - 1):
        return None
    return [*lines[: at - 1], lines[at], lines[at - 1], *lines[at + 1 :]]


def only_if(random: Random, lines: list[str], at: int) -> list[str]:
    """An instruction is executed in some rounds alone; outside a loop of k that is no program."""
    return [*lines[:at], f"if ({random.choice(CONDITIONS)}) {{", lines[at], "}", *lines[at + 1 :]]


def other(random: Random, lines: list[str], _at: int) -> list[str] | None:
    """Another expression, count, or bound."""
    text = "\n".join(lines)
    pattern, instead = random.choice(list(EXPRESSIONS.items()))
    found = list(re.finditer(pattern, text[text.index("\n}") :]))
    if not found:
        return None
    match, start = random.choice(found), text.index("\n}")
    begin, end = start + match.start(), start + match.end()
    return (text[:begin] + match.expand(random.choice(instead)) + text[end:]).split("\n")


MISTAKES: dict[Mistake, int] = {drop: 1, exchange: 1, only_if: 1, other: 3}


def whole(lines: list[str], at: int) -> bool:
    """Whether a line is one instruction of a thread."""
    line, before = lines[at].strip(), lines[at - 1].strip()
    return line.endswith(";") and not line.startswith((".", "const", "}")) and before.endswith((";", "{", "}"))


LOOP = re.compile(r"^  for k in 0\.\.N {\n(.*?)^  }$", re.MULTILINE | re.DOTALL)
COUNTED = """  mov.u32 %st, 0;
  mov.u32 %ph, 0;
  mov.u32 %un, 1;
  for k in 0..N {{
{body}    add.u32 %st, %st, 1;
    setp.eq.u32 %w, %st, S;
    @%w mov.u32 %st, 0;
    @%w xor.b32 %ph, %ph, 1;
    @%w xor.b32 %un, %un, 1;
  }}"""
"""A loop that keeps its stage, its phase and the other phase in registers."""


def in_registers(text: str) -> str:
    """The sketch whose threads keep stages and phases in registers, and make addresses of them."""
    sizes = {
        name: int(block or 1) * int(bits) // 8
        for bits, name, block in re.findall(r"\.[bu](\d+) +(?:\w+\[S\], )?(\w+)\[S\](?:\[(\d+)\])?", text)
    }
    sizes |= dict.fromkeys(re.findall(r"\.b64 .*?(\w+)\[S\],", text), 8)

    def counted(match: re.Match[str]) -> str:
        body = match[1]
        names = dict.fromkeys(re.findall(r"\b(\w+)\[k%S\](?!@)", body))
        if not names or not names.keys() <= sizes.keys():
            return match[0]
        body = body.replace("((k/S)%2)^1", "%un").replace("(k/S)%2", "%ph")
        for name in names:
            body = re.sub(rf"\b{name}\[k%S\](?!@)", f"%at_{name}", body)
        made = "".join(f"    mad.lo.u32 %at_{name}, %st, {sizes[name]}, {name};\n" for name in names)
        return COUNTED.format(body=made + body)

    return LOOP.sub(counted, text)


def sketch(random: Random, sketches: Sequence[str] = SKETCHES) -> str:
    """One of some sketches with up to two mistakes."""
    text = random.choice(sketches)
    if random.random() < 0.6:
        for old, new in FEW_LANES:
            text = text.replace(old, new)
    if random.random() < 0.4:
        text = in_registers(text)
    lines = text.split("\n")
    for _ in range(random.choice((0, 1, 1, 1, 2))):
        lines = mistaken(random, lines)
    return "\n".join(lines)


def mistaken(random: Random, lines: list[str]) -> list[str]:
    """The lines with a mistake."""
    first = lines.index("}") + 1
    while True:
        at = random.choice([k for k in range(first, len(lines)) if whole(lines, k)])
        made = random.choices(list(MISTAKES), list(MISTAKES.values()))[0](random, lines, at)
        if made is not None:
            return made


def answer(text: str, seconds: float) -> Answer:
    """What ``mcheck check`` answers."""
    program = parse(text, "any.litmus", every=True)
    return ask(program, load_model("ptx-9.0"), Question(about=Completeness.FINDINGS, timeout=seconds))


def codes(given: Answer) -> set[str]:
    """The codes of what was found."""
    return {f.code for f in given.findings}


def known(given: Answer) -> bool:
    """Whether an answer says what is so."""
    return given.verdict not in ("unknown", "bounded")


def compare(text: str) -> tuple[str, str, bool]:
    """What the answers were, in a word for either side; what there is to be said; whether they disagree."""
    every = answer(text, ANY)
    missing = codes(every)
    words: set[str] = set()
    for number in NUMBERS:
        given = answer(text.replace("N = any", f"N = {number}"), ONE)
        words.add(given.verdict)
        missing -= codes(given)
        if every.verdict == "proved" and known(given) and given.verdict != "proved":
            return "proved", f"proved, but {', '.join(sorted(codes(given)))} with N = {number}", True
        if every.verdict == "finding" and not missing:
            break
    if every.verdict == "finding" and missing and "finding" not in words and not words & {"unknown", "bounded"}:
        return "finding", f"{', '.join(sorted(missing))} with no number up to {NUMBERS[-1]}", False
    met = f"{every.verdict}, numbers {'+'.join(sorted(words))}"
    if not known(every) and (words == {"proved"} or "finding" in words):
        return met, f"open: {every.reason}", False
    return met, "", False


def main() -> int:
    """Compares a number of sketches."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=200, metavar="N")
    parser.add_argument("--seed", default="0")
    parser.add_argument("--first", type=int, default=0, metavar="K")
    parser.add_argument("--followed", action="store_true", help="only sketches whose threads go by words they read")
    parser.add_argument("--save", type=Path, help="folder for the sketches of which something is said")
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    contradictions = 0
    for item in range(options.first, options.first + options.programs):
        random = Random(f"{options.seed}-{item}")
        text = sketch(random, tuple(FOLLOWED.values())) if options.followed else sketch(random)
        try:
            met, said, wrong = compare(text)
        except InputError:
            met, said, wrong = "no program", "", False
        counts[met] += 1
        contradictions += wrong
        if said:
            print(f"{item}: {said}", flush=True)
            if options.save:
                options.save.mkdir(parents=True, exist_ok=True)
                (options.save / f"{options.seed}-{item}.litmus").write_text(text, encoding="utf-8")
    for met, count in counts.most_common():
        print(f"{count:6}  {met}")
    print(f"{contradictions:6}  contradictions")
    return bool(contradictions)


if __name__ == "__main__":
    sys.exit(main())
