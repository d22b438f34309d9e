"""Random sketches with any number of CTAs, right and wrong, and two answers about each.

    python -m tests.fuzz.any_ctas --programs 100 --seed 1 --kind copies

One answer is that about every number of CTAs, the others are about 2, 3, 4, ... CTAs, all of them followed together. A
plan is a protocol, a counter or a flag, with accesses before and behind it; places, bounds of loops, fences, scopes and
comparisons are drawn from those that are right and those that are wrong for some numbers only. With ``copies`` there
are asynchronous copies and reductions beside them; with ``turns`` each CTA waits for the one before.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter as Tally
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random

from mcheck.answers.result import Answer
from mcheck.base.errors import InputError
from mcheck.base.verdicts import Verdict
from mcheck.checking.policy.ask import ask
from mcheck.checking.policy.question import Completeness, Question
from mcheck.frontend.litmus import parse
from tests.fuzz.differential import DEFAULT_MODEL, model_of

NUMBERS = (2, 3, 4)
"""The numbers of CTAs of which the answers are compared with that about every number."""

SIZES = ("8*G + 8", "G", "G + 1", "2*G + 2", "4*G + 4", "G*G + 8")
WRITTEN = (
    "4*{me}", "4*{me}", "4*{me} + 4", "4*{me} + 16", "4*(G - 1) - 4*{me}", "4*G + 4*{me}", "16*{me} + 4*%warpid",
    "8*{me}", "8*{me} + 4*%warpid",
)  # fmt: skip
"""Places that differ between CTAs."""
PLACES = (
    *WRITTEN, "12*{me}", "4*{me} + 12", "8*{me} + 4", "0", "4", "12", "16", "4*(G - 1)", "4*({me} % 4)", "4*({me} % G)",
    "4*(({me} + 1) % G)", "4*(({me} + 3) % G)", "8*({me} % 3)", "4*(G % 4)", "4*G", "4*(G*{me})", "4*({me}/2)",
    "4*({me} & 1)", "4*(G % 4) + 4*{me}", "4*(({me} + G) % 4)",
)  # fmt: skip
LOOP_PLACES = (
    "4*k", "4*k", "4*k", "8*k", "4*k + 4*{me}", "4*k + 12", "4*(k % 4)", "0", "4*{me}", "4*G - 4*k - 4", "16*k",
)  # fmt: skip
BOUNDS = (
    ("0", "G"), ("0", "G"), ("1", "G"), ("3", "G"), ("4", "G"), ("0", "G - 3"), ("0", "{me}"), ("{me}", "G"),
    ("{me} + 3", "G"), ("{me} + 1", "{me} + 3"), ("0", "{me} % 4"), ("2", "{me}"), ("0", "G % 4"), ("0", "2"),
    ("3", "{me}"), ("G", "2*{me}"), ("G - 3", "{me}"), ("{me} + 1", "G"),
)  # fmt: skip
CONDITIONS = (
    "G > 3", "{me} == 3", "{me} & 4", "G % 4 == 3", "r9 == 1", "r0 == 3", "r2 == 1", "{me} < G", "%warpid == 0",
    "r7 == 1",
)  # fmt: skip
ASKS = (
    "r0 == G - 1", "r0 >= G - 1", "!(r0 != G - 1)", "r0 > G - 2", "r0 == G", "r0 < G - 1", "r0 != G - 1", "r0 == G - 2",
    "r0 >= 3", "r0 > 2", "r0 + 1 == G", "r0 == %nctaid.x - 1", "r0 % 4 == 3",
)  # fmt: skip
TESTS = (
    "setp.eq.u32 %p1, r0, G - 1;", "setp.ge.u32 %p1, r0, G - 1;", "setp.eq.s32 %p1, r0, G - 1;",
    "setp.eq.u32 %p1, r0, G + 4294967292;", "setp.gt.s32 %p1, r0, G + 4294967290;", "setp.eq.u32 %p1, r0, 3;",
    "sub.u32 r5, r0, G; setp.eq.u32 %p1, r5, 4294967295;", "setp.lt.u32 %p1, r0, G + 4294967293;",
)  # fmt: skip
AWAITED = ("== G", ">= G", "> G - 1", ">= G - 1", ">= 3", ">= G - 3", "== 4")
TILES = (
    "16*{me}", "16*{me}", "16*{me}", "16*{me} + 16", "16*(G - 1) - 16*{me}", "0", "32", "16*(({me} + 1) % G)",
    "16*({me} % 3)", "32*{me}", "16*G", "16*({me}/2)",
)  # fmt: skip
"""Places of asynchronous copies."""
FENCES = ("fence.acq_rel.gpu;", "fence.sc.gpu;", "", "fence.acq_rel.cta;", "membar.gl;")


@dataclass(frozen=True)
class Plan:
    """The text of a sketch."""

    protocol: str
    text: str


class Planner:
    """Draws a sketch; of the choices the first one is right, and others are taken with the given odds."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.odds = random.choice((0.05, 0.15, 0.3))
        self.protocol = random.choice(("last", "last", "waits", "flag", "leader", "none"))
        self.first = 1 if self.protocol in ("flag", "leader") else random.choice((0, 0, 0, 1))
        self.warps = random.choice((1, 1, 1, 2))
        self.me = f"(%ctaid.x - {self.first})" if self.first else "%ctaid.x"

    def pick(self, choices: Sequence[str]) -> str:
        """The first choice, or any."""
        return self.random.choice(choices) if self.random.random() < self.odds else choices[0]

    def plan(self) -> Plan:
        """The sketch."""
        first = self.first
        lines = [
            "PTX random", "const G = any;", *self.declared(),
            f"  .global .u32 x[{self.pick(SIZES)}], y[{self.pick(SIZES)}], z[16];",
            f"  .global .u32 count = {self.pick(('0', '2'))}, flag = 0; .shared .u32 s; }}",
        ]  # fmt: skip
        if self.protocol in ("flag", "leader") or (first and self.random.random() < 0.5):
            lines += ["leader@cta 0 {", *_indent(self.leader()), "}"]
        place = f"cta {first}..G" + (f" + {first}" if first else "")
        place += f", warp 0..{self.warps}, lane 0" if self.warps > 1 else ""
        lines += [f"block@{place} {{", *_indent(self.block()), "}"]
        return Plan(self.protocol, "\n".join(lines) + "\n")

    def declared(self) -> list[str]:
        """The first declarations, and the brace before them."""
        return ["{"]

    def leader(self) -> list[str]:
        """The CTA that is not like the others."""
        lines = self.some("z", 0, 1, 2, writes=True)
        if self.protocol == "leader":
            lines += [self.wait("count", self.pick(AWAITED)), *self.some("x", 0, 1, 2)]
        if self.protocol in ("flag", "leader"):
            store = f"st.{self.pick(('release', 'relaxed'))}.gpu.global.u32"
            lines += [self.pick(FENCES), f"{store} [flag], {self.pick(('1', 'G', '3'))};"]
        return lines + self.some("y", 0, 0, 0, 1)

    def block(self) -> list[str]:
        """The CTAs that are alike."""
        lines = self.some("x", 0, 1, 1, 1, 2, writes=True)
        match self.protocol:
            case "last":
                lines += self.alone([self.pick(FENCES), self.count("r0")])
                inner = [self.pick(FENCES), *self.some("x", 1, 1, 2)]
                if self.random.random() < 0.15:
                    inner.append("st.relaxed.gpu.global.u32 [count], 0;")
                lines += self.ask(inner)
            case "waits":
                lines += self.alone([self.pick(FENCES), self.count("")])
                lines += self.alone([self.wait("count", self.pick(AWAITED)), self.pick(FENCES)])
                lines += self.some("x", 1, 1, 2)
            case "flag" | "leader":
                if self.protocol == "leader":
                    lines += self.alone([self.pick(FENCES), self.count("")])
                lines += [self.wait("flag", self.pick(("== 1", ">= 1"))), self.pick(FENCES)]
                lines += self.some(self.random.choice("xz"), 1, 1, 2)
        return lines + self.some("y", 0, 0, 1, writes=True)

    def alone(self, lines: list[str]) -> list[str]:
        """What the first warp of a CTA does, between barriers."""
        if self.warps == 1:
            return lines
        meet = self.pick(("bar.sync 0;", ""))
        return [meet, "if (%warpid == 0) {", *lines, "}", meet]

    def ask(self, inner: list[str]) -> list[str]:
        """What the last CTA does."""
        if self.warps == 1 and self.random.random() < 0.6:
            return [f"if ({self.pick(ASKS)}) {{", *inner, "}"]
        asks = [self.pick(TESTS), "selp.u32 r6, 1, 0, %p1;"]
        if self.warps == 1:
            return [*asks, "if (r6 == 1) {", *inner, "}"]
        return [
            *self.alone([*asks, "st.shared.u32 [s], r6;"]), "ld.shared.u32 r7, [s];", "if (r7 == 1) {", *inner, "}",
        ]  # fmt: skip

    def count(self, register: str) -> str:
        """Adds to the counter."""
        sem, scope = self.pick(("release", "acq_rel", "relaxed")), self.pick(("gpu", "sys", "cta"))
        amount = self.pick(("1", "2", "4294967295"))
        if not register:
            sem = "release" if sem == "acq_rel" else sem
            return f"red.{sem}.{scope}.global.add.u32 [count], {amount};"
        return f"atom.{sem}.{scope}.global.add.u32 {register}, [count], {amount};"

    def wait(self, word: str, test: str) -> str:
        """Waits for a word."""
        return f"await ld.{self.pick(('acquire', 'relaxed'))}.gpu.global.u32 r2, [{word}] {test};"

    def some(self, name: str, *numbers: int, writes: bool = False) -> list[str]:
        """A few weak accesses."""
        return [self.access(name, writes=writes) for _ in range(self.random.choice(numbers))]

    def access(self, name: str, *, writes: bool) -> str:
        """A weak access, perhaps in a loop or under a condition; one that is right or any."""
        random = self.random
        name = self.pick((name, "x", "y", "z"))
        writes = random.random() < self.odds if not writes else random.random() > self.odds / 2
        looped = random.random() < 0.3 and not (writes and random.random() > 2 * self.odds)
        places = (LOOP_PLACES if looped else PLACES) if not writes or random.random() < 2 * self.odds else WRITTEN
        place = self.pick(("0", "4", "8", "4*%warpid")) if name == "z" else random.choice(places)
        if name in "xy" and self.warps == 2 and random.random() > self.odds and not looped:
            place = "8*{me} + 4*%warpid"
        at = f"[{name} + {place}]"
        line = f"st.global.u32 {at}, 1;" if writes else f"ld.global.u32 r9, {at};"
        if random.random() < 0.2 * self.odds:
            line = f"if ({random.choice(CONDITIONS)}) {{ {line} }}"
        if looped:
            low, high = random.choice(BOUNDS)
            line = f"for k in {low}..{high} {{ {line} }}"
        return line.replace("{me}", self.me)


class CopyPlanner(Planner):
    """Draws a sketch with asynchronous copies and reductions."""

    phase = 0

    def declared(self) -> list[str]:
        """Tiles, a buffer, an mbarrier."""
        return [
            "{ .global .align 16 .b8 t[32*G + 64], u[16*G + 64];",
            "  .shared .align 16 .b8 buf[64]; .shared .b64 full;",
        ]  # fmt: skip

    def block(self) -> list[str]:
        """The CTAs that are alike, the first warp of which copies."""
        text = [*self.pieces(0, 1, 1, 2), *_indent(super().block()), *self.pieces(0, 1, 1)]
        return ["if (%warpid == 0) { mbarrier.init.shared::cta.b64 [full], 1; }", *text]

    def pieces(self, *numbers: int) -> list[str]:
        """A few copies, reductions and accesses of what these access."""
        return [line for _ in range(self.random.choice(numbers)) for line in self.alone(self.piece())]

    def piece(self) -> list[str]:
        """One of them."""
        random = self.random
        name = self.pick(("t", "t", "u"))
        at = f"[{name} + {self.pick(TILES) if random.random() < 0.5 else random.choice(TILES)}]".replace(
            "{me}", self.me
        )
        fence = self.pick(("fence.proxy.async;", "fence.proxy.async.shared::cta;", ""))
        behind = [
            "cp.async.bulk.commit_group;",
            self.pick(("cp.async.bulk.wait_group 0;", "cp.async.bulk.wait_group.read 0;")),
        ]
        match random.randrange(7):
            case 0:
                return [fence, f"cp.async.bulk.global.shared::cta.bulk_group {at}, [buf], 16;", *behind]
            case 1:
                self.phase += 1
                wait = f"await mbarrier.try_wait.parity.shared::cta.b64 [full], {(self.phase - 1) % 2};"
                copy = f"cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [buf], {at}, 16, [full];"
                return [fence, "mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 16;", copy, wait]
            case 2:
                wait = self.pick(("cp.async.wait_group 0;", "cp.async.wait_group 1;"))
                return [f"cp.async.ca.shared.global [buf + 32], {at}, 16;", "cp.async.commit_group;", wait]
            case 3:
                at = f"[u + {self.pick(('0', '0', '16*' + self.me, '32'))}]"
                return [fence, f"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 {at}, [buf], 16;", *behind]
            case 4:
                at = f"[u + {self.pick(('0', '0', '4', '16*' + self.me))}]"
                return [f"red.{self.pick(('relaxed', 'release'))}.{self.pick(('gpu', 'cta'))}.global.add.u32 {at}, 3;"]
            case 5:
                return [f"ld.global.u32 r9, {at};", self.pick(("", "fence.proxy.async;"))]
        return [f"st.global.u32 {at}, 1;", self.pick(("fence.proxy.async;", ""))]


class TurnPlanner(Planner):
    """Draws a sketch whose CTAs wait for each other, one after the other."""

    def plan(self) -> Plan:
        """The sketch."""
        random, me = self.random, self.me
        self.protocol = random.choice(("turn", "scan", "tickets"))
        self.me = "0" if self.protocol == "tickets" and random.random() < 0.9 else me
        by, start = self.pick(("1", "2", "0")), self.pick(("0", "1", "7"))
        place, value, after = "word", f"{by}*{me} + {start}", f"{by}*{me} + {start} + {self.pick((by, '2'))}"
        initial, draw = start, []
        match self.protocol:
            case "scan":
                place, value = f"words + 4*{me}", "1"
                behind, after = f"words + 4*{me} + {self.pick(('4', '8'))}", self.pick(("1", "2"))
            case "tickets":
                behind = place
                draw = [
                    f"atom.{self.pick(('relaxed', 'acq_rel'))}.gpu.global.add.u32 r0, [count], {self.pick(('1', '2'))};"
                ]
                value = self.pick(("r0", "r0", "r4"))
                draw += ["add.u32 r5, r0, 1;", "mov.u32 r4, r0;"]
                after, initial = self.pick(("r5", "r0")), "0"
            case _:
                behind = place
        acquires, releases = (random.choice(("now", "fence")) for _ in range(2))
        wait = f"await ld.{'acquire' if acquires == 'now' else 'relaxed'}.gpu.global.u32 r1, [{place}] == {value};"
        order, scope = (
            self.pick(("release" if releases == "now" else "relaxed", "relaxed")),
            self.pick(("gpu", "sys", "cta")),
        )
        signal = f"st.{order}.{scope}.global.u32 [{behind}], {after};"
        fences = [self.pick(FENCES) if needs == "fence" else "" for needs in (acquires, releases)]
        if random.random() < self.odds / 2:
            fences.reverse()
        lines = [
            *self.some("y", 0, 1, 1, writes=random.random() < 0.5), *self.alone([*draw, wait, fences[0]]),
            *self.some(random.choice("xxz"), 0, 1, 2), *self.some(random.choice("xxz"), 0, 1, 2, writes=True),
            *self.alone([fences[1], signal]), *self.some("y", 0, 0, 1, writes=random.random() < 0.5),
        ]  # fmt: skip
        lane = f", warp 0..{self.warps}, lane 0" if self.warps > 1 else ""
        end = f" + {self.first}" if self.first else ""
        text = [
            "PTX random", "const G = any;",
            f"{{ .global .u32 x[8*G + 8], y[{self.pick(SIZES)}], z[16], words[G + 2] = {{1}};",
            f"  .global .u32 count = 0, word = {initial}, flag = 0; }}",
        ]  # fmt: skip
        if self.first and random.random() < 0.6:
            setting = f"st.{self.pick(('release', 'relaxed'))}.gpu.global.u32 [flag], 1;"
            text += ["leader@cta 0 {", *_indent([*self.some("z", 0, 1, 2, writes=True), setting]), "}"]
            if self.warps == 1:
                lines.insert(random.randrange(len(lines) + 1), self.wait("flag", "== 1"))
        text += [f"block@cta {self.first}..G{end}{lane} {{", *_indent(lines), "}"]
        return Plan(self.protocol, "\n".join(text) + "\n")

    def some(self, name: str, *numbers: int, writes: bool = False) -> list[str]:
        """A few weak accesses, often of one place."""
        if self.random.random() < 0.5:
            kind = "st.global.u32 [{}], 1;" if writes else "ld.global.u32 r9, [{}];"
            return [kind.format(f"{name} + {self.random.choice(('0', '4', f'4*{self.me}', f'4*{self.me} + 4'))}")]
        return super().some(name, *numbers, writes=writes)


def _indent(lines: Iterable[str]) -> list[str]:
    return [f"  {line}" for line in lines if line]


PLANNERS: dict[str, type[Planner]] = {"accesses": Planner, "copies": CopyPlanner, "turns": TurnPlanner}


def generate(random: Random, kind: str = "accesses") -> Plan:
    """A sketch of a random protocol."""
    return PLANNERS[kind](random).plan()


# --- the answers ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Compared:
    """The answer about every number, and the smallest number that contradicts it (0 if none does)."""

    every: Answer | None
    why: str
    contradicted_by: int = 0
    followed: tuple[int, ...] = ()

    @property
    def is_proved(self) -> bool:
        """Whether the answer is a proof for every number."""
        return self.every is not None and self.every.verdict is Verdict.PROVED


def compare(text: str, numbers: Iterable[int] = NUMBERS, seconds: float = 10.0, *, engine: str = "auto") -> Compared:
    """The answers about a sketch; the numbers are asked about if it is proved for every one."""
    model = model_of(DEFAULT_MODEL)
    try:
        program = parse(text, "any.litmus", every=True)
    except InputError as error:
        return Compared(None, str(error.message))
    question = Question(about=Completeness.FINDINGS, timeout=seconds, brief=True)
    try:
        every = ask(program, model, question)
    except InputError as error:
        return Compared(None, str(error.message))
    if every.verdict is not Verdict.PROVED:
        return Compared(every, "")
    assert program.instance is not None
    followed = []
    for number in numbers:
        found = ask(program.instance(number), model, question, engine)
        if found.verdict is Verdict.FINDING:
            return Compared(every, "", contradicted_by=number)
        if found.verdict is Verdict.PROVED:
            followed.append(number)
    return Compared(every, "", followed=tuple(followed))


def main() -> int:
    """Compare the answers about random sketches."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--largest", type=int, default=max(NUMBERS))
    parser.add_argument("--engine", default="auto")
    parser.add_argument("--kind", choices=PLANNERS, default="accesses")
    parser.add_argument("--minutes", type=float, default=0, help="stop after so many")
    given = parser.parse_args()
    tally: Tally[str] = Tally()
    begin = time.monotonic()
    for seed in range(given.seed, given.seed + given.programs):
        if given.minutes and time.monotonic() - begin > 60 * given.minutes:
            break
        plan = generate(Random(seed), given.kind)
        found = compare(plan.text, range(2, given.largest + 1), engine=given.engine)
        said = "refused" if found.every is None else found.every.verdict.value
        tally[f"{plan.protocol}: {said}"] += 1
        tally["numbers followed"] += len(found.followed)
        if found.contradicted_by:
            print(f"seed {seed}: proved, but not with {found.contradicted_by}\n{plan.text}", flush=True)
    for what, number in sorted(tally.items()):
        print(f"{number:5} {what}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
