"""Random small grids whose CTAs meet several times, and two answers about each.

    python -m tests.fuzz.rounds --programs 200 --seed 1

One answer is that of ``mcheck.checking.modules.pairs.signalled_grid``, which follows pairs of clusters; the other one
is that of the explicit engine about the threads as a litmus test (``tests.fuzz.grids``), which shares none of that.

Two to four CTAs of one thread meet at one to three barriers of a kind: a counter that counts on or down, a last one
that resets the counter and sets or flips a flag, a first CTA that collects the others, turns, a flag of each. Between
the barriers they access the data, by a plan in which each has its turns. Then a few lines are damaged or edited.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from random import Random

from mcheck.answers.result import Answer
from mcheck.base.budget import Limit
from mcheck.base.verdicts import Verdict
from mcheck.checking.modules.pairs.signalled_grid import answer_signalled
from tests.fuzz.differential import EngineAnswer
from tests.fuzz.grids import DATA, WORDS, Grid, Lines, damage, judge_threads, make_grid, write_module
from tests.fuzz.pair_answers import build, follow_pair, say_why

KINDS = ("count", "last", "flips", "collects", "looks", "counts on", "down", "uneven", "turns", "flags", "sums")
TOP = 1 << 32
EDITS: tuple[tuple[str, Callable[[Random, str], str]], ...] = (
    (r"(?<=[=,] )\d+", lambda random, old: str((int(old) + random.choice((-1, 1, 2))) % TOP)),
    (r"==|>=", lambda random, old: random.choice(("==", ">=", "!="))),
    (r"\[[xy]\]", lambda random, old: f"[{random.choice(WORDS)}]"),
    (r"red\.(?=\w+\.gpu\.global\.add)|st\.(?=re)", lambda random, old: random.choice(("red.", "st."))),
)
"""What an edit changes, and to what."""


def meet(kind: str, k: int, me: int, ctas: int, *, fenced: bool) -> Lines:
    """What a CTA does at the barrier of a round."""
    release, acquire = ("relaxed", "relaxed") if fenced else ("release", "acquire")
    fence = ("fence.acq_rel.gpu;",) if fenced else ()
    flag = (k + 1) % 2 if kind == "flips" else k + 1
    opens = (*fence, f"st.{release}.gpu.global.u32 [y], {flag};")
    passes = (f"await ld.{acquire}.gpu.global.u32 r1, [y] == {flag};", *fence)
    adds = f"red.{release}.gpu.global.add.u32 [x], 1;"
    if kind == "count":
        return (*fence, adds, f"await ld.{acquire}.gpu.global.u32 r1, [x] >= {(k + 1) * ctas};", *fence)
    if kind == "down":
        down, end = adds.replace(" 1;", f" {TOP - 1};"), TOP - (k + 1) * ctas
        return (*fence, down, f"await ld.{acquire}.gpu.global.u32 r1, [x] == {end};", *fence)
    if kind in ("uneven", "sums"):
        each = [j + 1 for j in range(ctas)] if kind == "uneven" else [2, *(TOP - 1 for _ in range(ctas - 2)), 2 * ctas]
        total = (k + 1) * sum(each) % TOP
        adds = adds.replace(" 1;", f" {each[me]};")
        return (*fence, adds, f"await ld.{acquire}.gpu.global.u32 r1, [x] >= {total};", *fence)
    if kind == "turns":
        turn = k * ctas + me
        return (f"await ld.{acquire}.gpu.global.u32 r1, [x] == {turn};", *fence,
                f"st.{release}.gpu.global.u32 [x], {turn + 1};")  # fmt: skip
    if kind == "flags" and ctas <= len(WORDS):
        others = [f"await ld.{acquire}.gpu.global.u32 r1, [{WORDS[j]}] >= {k + 1};" for j in range(ctas) if j != me]
        return (*fence, f"st.{release}.gpu.global.u32 [{WORDS[me]}], {k + 1};", *others, *fence)
    if kind == "flags":
        return (*fence, adds, f"await ld.{acquire}.gpu.global.u32 r1, [x] == {(k + 1) * ctas};", *fence)
    if kind == "collects" and me == 0:
        collects = f"await ld.{acquire}.gpu.global.u32 r1, [x] == {ctas - 1};"
        return (collects, *fence, "st.relaxed.gpu.global.u32 [x], 0;", *opens)
    if kind == "collects":
        return (*fence, adds, *passes)
    draw = "relaxed" if fenced else "acq_rel"
    last = (k + 1 if kind == "counts on" else 1) * ctas - 1
    resets = () if kind == "counts on" else ("st.relaxed.gpu.global.u32 [x], 0;",)
    looks = ("ld.relaxed.gpu.global.u32 r2, [y];",) if kind == "looks" else ()
    asks = (f"if (r2 == {k}) {{", "st.global.u32 [e], 3;", "}") if kind == "looks" and me == k else ()
    return (
        *looks, *asks, *fence, f"atom.{draw}.gpu.global.add.u32 r0, [x], 1;", f"if (r0 == {last}) {{", *fence, *resets,
        *opens, "} else {", *passes, "}",
    )  # fmt: skip


def edit(random: Random, lines: Lines) -> Lines:
    """The lines with another number, comparison, word or operation, or one that stands elsewhere."""
    pattern, change = random.choice(EDITS)
    fits = [(k, m) for k, text in enumerate(lines) for m in re.finditer(pattern, text)]
    if not fits or random.random() < 0.2:
        plain = [k for k, text in enumerate(lines) if text.endswith(";")]
        if not plain:
            return lines
        k, to = random.choice(plain), random.randint(0, len(lines) - 1)
        rest = (*lines[:k], *lines[k + 1 :])
        return (*rest[:to], lines[k], *rest[to:])
    k, match = random.choice(fits)
    text = lines[k][: match.start()] + change(random, match[0]) + lines[k][match.end() :]
    if text.startswith(("if", "st")):
        text = text.replace(">=", "==").replace(".global.add", ".global")
    if text.startswith("red") and ".add" not in text:
        text = text.replace(".global", ".global.add")
    return (*lines[:k], text, *lines[k + 1 :])


def generate(random: Random) -> Grid:
    """A program with up to two damaged lines."""
    ctas = random.choices((2, 3, 4), (4, 3, 1))[0]
    rounds = random.choices((1, 2, 3), (2, 4, 2))[0] if ctas < 4 else 1
    kind, fenced = random.choice(KINDS), random.random() < 0.4
    bodies: list[list[str]] = [[] for _ in range(ctas)]
    for k in range(rounds + 1):
        for word in DATA:
            writes = random.random() < 0.4
            some = [random.randrange(ctas)] if writes else random.sample(range(ctas), random.randint(0, min(2, ctas)))
            for me in some:
                bodies[me].append(f"st.global.u32 [{word}], {k + 1};" if writes else f"ld.global.u32 r7, [{word}];")
        for me in range(ctas) if k < rounds else ():
            bodies[me] += meet(kind, k, me, ctas, fenced=fenced)
    made: list[Lines] = [tuple(body) for body in bodies]
    for _ in range(random.choices((0, 1, 2), (2, 3, 1))[0]):
        me = random.randrange(ctas)
        made[me] = random.choice((damage, edit))(random, made[me])
        if random.random() < 0.4:  # the same everywhere
            made = [made[me] if bodies[other] == bodies[me] else made[other] for other in range(ctas)]
    return make_grid(made, 1, cooperative=random.random() < 0.9)


def answer_by_pairs(grid: Grid, seconds: float) -> tuple[Answer | None, str]:
    """The answer of the argument about pairs, or why there is none."""
    module, launch = build(write_module(grid), grid.launch, cooperative=grid.cooperative)
    return say_why(lambda: answer_signalled(module, launch, partial(follow_pair, module), Limit(seconds)))


def compare(grid: Grid, seconds: float = 10.0) -> tuple[Answer | None, str, EngineAnswer | None]:
    """Both answers, the second one if there is the first one; and why there is none, "missed" if the first one proves
    what has an error, or "false alarm" if it finds one where there is none.
    """
    found, why = answer_by_pairs(grid, seconds)
    if found is None:
        return None, why, None
    judge = judge_threads(grid.draft)
    if found.verdict is not Verdict.FINDING:
        return found, "missed" if judge.kinds else "", judge
    return found, "" if judge.kinds or judge.kinds is None else "false alarm", judge


def main() -> int:
    parser = argparse.ArgumentParser(description="compares answers about random grids whose CTAs meet several times")
    parser.add_argument("--programs", type=int, default=200, help="how many programs (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="the seed of the first program (%(default)s)")
    chosen = parser.parse_args()
    tally: Counter[str] = Counter()
    for seed in range(chosen.seed, chosen.seed + chosen.programs):
        grid = generate(Random(seed))
        found, why, judge = compare(grid)
        open_still = judge is not None and judge.kinds is None
        said = "" if found is None else f"{found.verdict.value}{', the judge left it open' * open_still}"
        tally[f"refused: {why}" if found is None else why or said] += 1
        if found is not None and why:
            print(f"seed {seed}: {why}\n{grid.draft.text()}", flush=True)
    for what, number in tally.most_common():
        print(f"{number:5} {what}")
    return int(tally["missed"] + tally["false alarm"] > 0)


if __name__ == "__main__":
    sys.exit(main())
