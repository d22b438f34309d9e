"""Random small grids, each as a module that is launched and as a litmus test of its threads, and their answers.

    python -m tests.fuzz.grids --programs 200 --seed 1 [--gpus 2]

Two or three CTAs of one thread, or two CTAs of two, store and load words with and without care, draw tickets, wait, and
branch on what they read. Of the module, the paths that differ in values read are followed one after another; the
explicit engine lists the executions of the litmus test, and shares none of that. Some programs follow a plan (a
message, tickets, a lock, a barrier of the grid) that is damaged now and then; in the others, threads access the data
where they read certain values, so there is a race if the model allows these values together. With ``--gpus 2`` the CTAs
are those of two launches, on different GPUs.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import accumulate, combinations, count, product
from random import Random
from typing import Any

from mcheck.base.budget import processor_time
from mcheck.base.verdicts import Verdict
from mcheck.checking.check.modules import check_text
from mcheck.checking.policy.agreement import COUNTED
from mcheck.checking.run.case import Options, Settings
from mcheck.checking.run.result import Result
from mcheck.frontend.litmus import parse
from mcheck.frontend.ptx import launch_reader
from tests.fuzz.differential import DEFAULT_MODEL, EngineAnswer, model_of, run_engine
from tests.fuzz.draft import Draft, Role, units
from tests.fuzz.judged_answers import seed_parser, tell_outcomes
from tests.fuzz.minimise import minimise

WORDS = ("x", "y", "z")
DATA = ("d", "e")
NOT_RESIDENT = "DEAD007"
MODULE_SECONDS = 2.0
JUDGE_SECONDS = 5.0
REGISTERS = 8
FIRST = "first"
"""The parameter for the number of CTAs on the GPUs before."""
FAILS = {"==": "ne", ">=": "lt", "!=": "eq"}
"""The comparison that goes on waiting."""
OWN = 4
"""The register that holds the number of the CTA, from 1 on; the others hold zero at first."""

Lines = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Grid:
    """A program, whose roles are the threads in their order, and its launch."""

    draft: Draft
    width: int
    """Threads of a CTA."""
    cooperative: bool
    gpus: tuple[int, ...] = ()
    """The number of CTAs on each GPU, if there are several."""

    @property
    def launch(self) -> dict[str, Any]:
        """The launch of the module, or the launches on several GPUs."""
        names = (*WORDS, *DATA)
        common = {"block": self.width, "cooperative": self.cooperative}
        if not self.gpus:
            words = {name: {"buffer": 4, "init": {"hex": "00000000"}} for name in names}
            return {"grid": len(self.draft.roles) // self.width, **common, "params": words}
        launches = [
            {
                "grid": number, "gpu": gpu, **common,
                "params": {**{name: {"buffer": name} for name in names}, FIRST: sum(self.gpus[:gpu])},
            }
            for gpu, number in enumerate(self.gpus)
        ]  # fmt: skip
        return {
            "launches": launches,
            "buffers": {name: {"bytes": 4, "gpu": 0, "init": {"hex": "00000000"}} for name in names},
        }

    @property
    def parts(self) -> tuple[range, ...]:
        """The CTAs of each launch."""
        ends = list(accumulate(self.gpus or (len(self.draft.roles) // self.width,)))
        return tuple(range(start, end) for start, end in zip((0, *ends), ends, strict=False))


# --- the two forms of a program ---------------------------------------------------------------------------------------


def make_grid(bodies: list[Lines], width: int, *, cooperative: bool, gpus: tuple[int, ...] = ()) -> Grid:
    """The program in which the threads execute these lines, on these numbers of CTAs of each GPU if there are
    several.
    """
    places = [f"gpu {gpu}, cta {cta}" for gpu, number in enumerate(gpus) for cta in range(number)]
    places = places or [f"cta {cta}" for cta in range(len(bodies) // width)]
    roles = tuple(
        Role(f"P{k}", f"{places[k // width]}, warp 0, lane {k % width}", lines) for k, lines in enumerate(bodies)
    )
    words = tuple(f".global .u32 {name} = 0;" for name in (*WORDS, *DATA))
    values = {(k, r): k // width + 1 if r == OWN else 0 for k in range(len(roles)) for r in range(REGISTERS)}
    objects = (*words, *(f"P{k}:r{r} = {value};" for (k, r), value in values.items()))
    return Grid(Draft("grid", DEFAULT_MODEL, objects, roles), width, cooperative, gpus)


def write_module(grid: Grid) -> str:
    """The program as a module; threads of several CTAs that execute the same lines share their code."""
    names = (*WORDS, *DATA)
    params = ", ".join([*(f".param .u64 {name}" for name in names), *([f".param .u32 {FIRST}"] if grid.gpus else [])])
    lines = [".version 8.7", ".target sm_90", ".address_size 64", f".visible .entry k({params})", "{"]
    lines += [".reg .pred %p<2>;", f".reg .b32 %r<{REGISTERS}>, %k<9>, %me;", f".reg .b64 %a<{len(names)}>;"]
    lines += [f"ld.param.u64 %a{k}, [{name}];" for k, name in enumerate(names)]
    lines += [f"mov.u32 %r{k}, 0;" for k in range(REGISTERS)]
    lines += ["mov.u32 %k0, %ctaid.x;", "mov.u32 %k1, %tid.x;"]
    lines += [f"ld.param.u32 %k3, [{FIRST}];", "add.u32 %k0, %k0, %k3;"] if grid.gpus else []
    lines += [f"mad.lo.u32 %me, %k0, {grid.width}, %k1;"]
    lines.append(f"add.u32 %r{OWN}, %k0, 1;")
    labels = count()
    codes: dict[tuple[int, Lines], str] = {}
    for k, role in enumerate(grid.draft.roles):
        code = codes.setdefault((k % grid.width, role.lines), f"T{k}")
        lines += [f"setp.eq.u32 %p0, %me, {k};", f"@%p0 bra {code};"]
    for (_, body), label in codes.items():
        lines += [f"{label}:", *_write_body(body, labels), "ret;"]
    return "\n".join([*lines, "}", ""])


def _write_body(body: Lines, labels: Iterator[int]) -> Iterator[str]:
    """The lines of a thread as PTX: blocks and waits become branches."""
    open_blocks: list[tuple[str, ...]] = []
    for line in body:
        text = re.sub(r"\br(\d)\b", r"%r\1", line)
        text = re.sub(r"\[(\w)\]", lambda m: f"[%a{(*WORDS, *DATA).index(m[1])}]", text)
        if test := re.fullmatch(r"if \((\S+) (==|!=) (\d+)\) \{", text):
            label = next(labels)
            open_blocks.append((f"L{label}:",))
            yield f"setp.{'ne' if test[2] == '==' else 'eq'}.u32 %p1, {test[1]}, {test[3]};"
            yield f"@%p1 bra L{label};"
        elif line == "} else {":
            label = next(labels)
            yield f"bra L{label};"
            yield from open_blocks.pop()
            open_blocks.append((f"L{label}:",))
        elif line.startswith("for "):
            label = next(labels)
            yield "mov.u32 %k2, 0;"
            yield f"L{label}:"
            open_blocks.append(("add.u32 %k2, %k2, 1;", "setp.lt.u32 %p1, %k2, 2;", f"@%p1 bra L{label};"))
        elif line == "}":
            yield from open_blocks.pop()
        elif wait := re.fullmatch(r"await (ld\S+ (%r\d), \[%a\d\]) (==|>=|!=) (\d+|%r\d);", text):
            label = next(labels)
            yield f"L{label}:"
            yield f"{wait[1]};"
            yield f"setp.{FAILS[wait[3]]}.u32 %p1, {wait[2]}, {wait[4]};"
            yield f"@%p1 bra L{label};"
        else:
            yield text


# --- the generator ----------------------------------------------------------------------------------------------------


def generate(random: Random, gpus: int = 1) -> Grid:
    """A random program, for one GPU or two."""
    width = random.choices((1, 2), (4, 1))[0]
    threads = 4 if width == 2 else random.choices((2, 3), (3, 2))[0]
    family = random.random()
    if family < 0.4:
        bodies = random.choice(PLANS)(random, threads)
        for _ in range(random.choices((0, 1, 2), (3, 4, 2))[0]):
            k = random.randrange(threads)
            bodies[k] = damage(random, bodies[k])
    elif family < 0.7:
        bodies = _outcome(random, threads)
    else:
        bodies = [_unplanned(random, threads) for _ in range(threads)]
        if random.random() < 0.3:
            bodies[1] = bodies[0] if width == 1 else bodies[1]
    if width == 2:
        bodies = _with_barriers(random, bodies)
    cooperative = random.random() < 0.8
    if gpus == 1:
        return make_grid(bodies, width, cooperative=cooperative)
    first = random.randint(1, threads // width - 1)
    wide = [tuple(_widen(random, text) for text in lines) for lines in bodies]
    return make_grid(wide, width, cooperative=cooperative, gpus=(first, threads // width - first))


def _widen(random: Random, line: str) -> str:
    """The line with scope ``.sys``, now and then as it is."""
    return line.replace(".gpu", ".sys") if random.random() < 0.92 else line


def _scope(random: Random) -> str:
    return random.choices(("gpu", "cta", "sys"), (12, 1, 1))[0]


def _load(random: Random, register: int, word: str, sems: str = "acquire relaxed") -> str:
    return f"ld.{random.choice(sems.split())}.{_scope(random)}.global.u32 r{register}, [{word}];"


def _store(random: Random, word: str, value: object, sems: str = "release relaxed") -> str:
    shown = f"r{OWN}" if random.random() < 0.15 else value
    return f"st.{random.choice(sems.split())}.{_scope(random)}.global.u32 [{word}], {shown};"


def _atomic(random: Random, register: int, word: str, sems: str = "acq_rel acquire release relaxed") -> str:
    kind = random.choice(("add", "add", "exch", "cas"))
    values = f"{random.randint(0, 1)}, {random.randint(1, 2)}" if kind == "cas" else str(random.randint(1, 2))
    sem = random.choice(sems.split())
    width = "b32" if kind != "add" else "u32"
    return f"atom.{sem}.{_scope(random)}.global.{kind}.{width} r{register}, [{word}], {values};"


def _fence(random: Random) -> str:
    return f"fence.{random.choice(('acq_rel', 'acq_rel', 'sc'))}.{_scope(random)};"


def _data(random: Random, register: int = 7) -> str:
    word = random.choices(DATA, (4, 1))[0]
    if random.random() < 0.5:
        return f"ld.global.u32 r{register}, [{word}];"
    return f"st.global.u32 [{word}], {random.randint(1, 2)};"


def _access(random: Random, register: int, words: tuple[str, ...]) -> list[str]:
    """An access of a word; what it reads, if it does, is in the register."""
    word = random.choice(words)
    what = random.choices(
        ("load", "store", "atomic", "fenced", "await", "red", "weak", "copy"), (5, 4, 4, 2, 1, 1, 0.3, 1)
    )[0]
    if what == "load":
        return [_load(random, register, word)]
    if what == "store":
        return [_store(random, word, random.randint(1, 2))]
    if what == "atomic":
        return [_atomic(random, register, word)]
    if what == "fenced":
        return [_store(random, word, 1, "relaxed"), _fence(random)]
    if what == "await":
        return ["await " + _load(random, register, word)[:-1] + f" == {random.randint(1, 2)};"]
    if what == "red":
        return [f"red.{random.choice(('relaxed', 'release'))}.{_scope(random)}.global.add.u32 [{word}], 1;"]
    if what == "copy" and register:
        return [_store(random, word, f"r{register - 1}")]
    return [f"ld.global.u32 r{register}, [{word}];"]


def _unplanned(random: Random, threads: int) -> Lines:
    """A few accesses and fences, some under a branch, and an access of the data where a value was read."""
    words = WORDS[: random.choice((1, 2, 2, 3))]
    lines = [_data(random)] if random.random() < 0.15 else []
    register = 0
    for _ in range(random.randint(1, 3 if threads < 4 else 2)):
        made = _access(random, register, words)
        if random.random() < 0.2:
            lines.append(_fence(random))
        if register and random.random() < 0.25:
            made = [
                f"if (r{random.randrange(register)} {random.choice(('==', '!='))} {random.randint(0, 2)}) {{",
                *made,
            ]
            if random.random() < 0.3:
                made += ["} else {", *_access(random, register, words)]
            made.append("}")
        elif random.random() < 0.1:
            made = ["for k in 0..2 {", *made, "}"]
        lines += made
        register += 1
    if random.random() < 0.8:
        test = f"if (r{random.randrange(register)} {random.choices(('==', '!='), (4, 1))[0]} {random.randint(0, 2)}) {{"
        lines += [test, *([_fence(random)] if random.random() < 0.15 else []), _data(random), "}"]
    return tuple(lines)


def _message(random: Random, threads: int) -> list[Lines]:
    """One thread writes the data and sets a flag that the others look at, wait for, or hand on."""
    first = ["st.global.u32 [d], 1;", "fence.acq_rel.gpu;", "st.relaxed.gpu.global.u32 [x], 1;"]
    if random.random() < 0.5:
        first = [
            first[0],
            random.choice(("st.release.gpu.global.u32 [x], 1;", "atom.release.gpu.global.add.u32 r0, [x], 1;")),
        ]
    bodies: list[Lines] = [tuple(first)]
    for k in range(1, threads):
        word = random.choice(WORDS[:k])
        read = random.choice(("ld.acquire.gpu.global.u32 r0, [{}];", "atom.acquire.gpu.global.add.u32 r0, [{}], 0;"))
        use = [f"ld.global.u32 r7, [{DATA[0]}];"] + (["st.global.u32 [e], r7;"] if k == threads - 1 else [])
        hand = [f"st.release.gpu.global.u32 [{WORDS[min(k, 2)]}], 1;"]
        if random.random() < 0.4:
            bodies.append((f"await ld.acquire.gpu.global.u32 r0, [{word}] == 1;", *use, *hand))
        elif random.random() < 0.3:
            again = ["if (r1 == 0) {", f"ld.acquire.gpu.global.u32 r1, [{word}];", "}"]
            bodies.append(("for k in 0..2 {", *again, "}", "if (r1 == 1) {", *use, *hand, "}"))
        else:
            bodies.append((read.format(word), "if (r0 == 1) {", *use, *hand, "}"))
    return bodies


def _tickets(random: Random, threads: int) -> list[Lines]:
    """Each writes, and draws a ticket; the last one, or each after its predecessor, goes on."""
    body = ["atom.acq_rel.gpu.global.add.u32 r0, [x], 1;"]
    if random.random() < 0.3:
        body = ["fence.acq_rel.gpu;", "atom.relaxed.gpu.global.add.u32 r0, [x], 1;", "fence.acq_rel.gpu;"]
    last = random.choice((threads - 1, threads - 1, 0, 1))
    body += [f"if (r0 == {last}) {{", "st.global.u32 [d], 7;", "}"]
    bodies: list[Lines] = [tuple(body) for _ in range(threads)]
    if last == threads - 1:
        bodies[0] = ("st.global.u32 [d], 1;", *body)
        bodies[1] = ("st.global.u32 [e], 1;", *body[:-2], "ld.global.u32 r6, [e];", *body[-2:])
    return bodies


def _lock(random: Random, threads: int) -> list[Lines]:
    """Each tries to get a lock, and writes the data where it got it."""
    take = random.choice(
        ("atom.acquire.gpu.global.cas.b32 r0, [x], 0, 1;", "atom.acquire.gpu.global.exch.b32 r0, [x], 1;")
    )
    free = random.choice((["st.release.gpu.global.u32 [x], 0;"], [], ["atom.release.gpu.global.exch.b32 r1, [x], 0;"]))
    body = (take, "if (r0 == 0) {", "ld.global.u32 r7, [d];", "st.global.u32 [d], 1;", *free, "}")
    return [body for _ in range(threads)]


def _barrier(random: Random, threads: int) -> list[Lines]:
    """A barrier of the grid between a store and a load of the data; or one for the last to arrive to open."""
    if random.random() < 0.5:
        meet = ["red.release.gpu.global.add.u32 [x], 1;", f"await ld.acquire.gpu.global.u32 r0, [x] == {threads};"]
    else:
        meet = ["atom.acq_rel.gpu.global.add.u32 r0, [x], 1;", f"if (r0 == {threads - 1}) {{"]
        meet += ["st.release.gpu.global.u32 [y], 1;", "}", "await ld.acquire.gpu.global.u32 r1, [y] == 1;"]
    bodies: list[Lines] = [(*meet, "ld.global.u32 r7, [d];") for _ in range(threads)]
    bodies[random.randrange(threads)] = ("st.global.u32 [d], 1;", *meet)
    return bodies


def _exclusion(random: Random, threads: int) -> list[Lines]:
    """Two threads set their flags and go on where the other's is not set (Dekker)."""
    fence = random.choice(("fence.sc.gpu;", "fence.sc.gpu;", "fence.acq_rel.gpu;"))
    bodies: list[Lines] = []
    for mine, other in (("x", "y"), ("y", "x")):
        use = ["if (r0 == 0) {", "st.global.u32 [d], 1;", "}"]
        bodies.append(
            (f"st.relaxed.gpu.global.u32 [{mine}], 1;", fence, f"ld.relaxed.gpu.global.u32 r0, [{other}];", *use)
        )
    return bodies + [_unplanned(random, threads) for _ in range(threads - 2)]


def _order(random: Random, threads: int) -> list[Lines]:
    """Two readers of two words, each with a use of the data if it saw the first without the second."""
    first, second = ("x", "y"), ("y", "x")
    bodies: list[Lines] = [(_store(random, "x", 1), _store(random, "y", 1))]
    for words in (first, second)[: threads - 1]:
        sems = random.choice(("acquire", "relaxed", "acquire relaxed"))
        reads = [_load(random, k, word, sems) for k, word in enumerate(words)]
        if random.random() < 0.3:
            reads.insert(1, "fence.sc.gpu;")
        bodies.append((*reads, "if (r0 == 1) {", "if (r1 == 0) {", "st.global.u32 [d], 1;", "}", "}"))
    if random.random() < 0.5:
        bodies[0] = (*bodies[0], "ld.global.u32 r7, [d];")
    return bodies + [_unplanned(random, threads) for _ in range(threads - len(bodies))]


def _outcome(random: Random, threads: int) -> list[Lines]:
    """Two or three accesses a thread, and a store to the data where all that was read is as guessed."""
    bodies: list[Lines] = []
    words = WORDS[: random.choice((1, 2, 2, 2, 3))]
    for _ in range(threads):
        lines: list[str] = []
        tests: list[str] = []
        for register in range(random.choice((2, 2, 3)) if threads < 3 else random.choice((1, 2, 2))):
            word = random.choice(words)
            what = random.choices(("load", "store", "atomic", "copy", "reduce"), (6, 5, 3, 2, 1))[0]
            if what == "store" or (what == "copy" and not tests):
                lines.append(_store(random, word, random.randint(1, 2)))
            elif what == "copy":
                lines += [f"add.u32 r6, r{register - 1}, {random.randint(0, 1)};", _store(random, word, "r6")]
            elif what == "reduce":
                lines.append(f"red.{random.choice(('relaxed', 'release'))}.gpu.global.add.u32 [{word}], 1;")
            else:
                lines.append((_load if what == "load" else _atomic)(random, register, word))
                tests.append(f"if (r{register} {random.choices(('==', '!='), (5, 1))[0]} {random.randint(0, 2)}) {{")
            if random.random() < 0.15:
                lines.append(_fence(random))
        if tests and random.random() < 0.3:
            lines += [tests[-1], _store(random, random.choice(words), random.randint(1, 2)), "}"]
        use = random.choice(("st.global.u32 [d], 1;", "st.global.u32 [d], 2;", "ld.global.u32 r7, [d];"))
        if tests and random.random() < 0.1:
            tests.append(f"if (r{OWN} == {random.randint(1, 2)}) {{")
        bodies.append((*lines, *tests, use, *("}" for _ in tests)))
    return [bodies[0]] * threads if random.random() < 0.2 else bodies


PLANS: tuple[Callable[[Random, int], list[Lines]], ...] = (_message, _tickets, _lock, _barrier, _exclusion, _order)
WEAKER = (
    ("acquire", "relaxed"), ("release", "relaxed"), ("acq_rel.gpu.global", "relaxed.gpu.global"),
    ("acq_rel.gpu.global", "release.gpu.global"), ("fence.sc", "fence.acq_rel"), (".gpu", ".cta"), (" == ", " != "),
    (" 1", " 2"), (" 0", " 1"), ("[d]", "[e]"), ("[x]", "[y]"), ("[y]", "[x]"),
    ("global.add.u32 r", "global.exch.b32 r"),
)  # fmt: skip


def damage(random: Random, lines: Lines) -> Lines:
    """The lines with one dropped, moved, added, or weaker."""
    places = [(start, end) for start, end in units(lines) if "} else {" not in lines[start:end]]
    what = random.choices(("weaker", "drop", "swap", "add", "open"), (6, 2, 1, 2, 1))[0]
    if what == "weaker" and (fits := [(k, w) for k, text in enumerate(lines) for w in WEAKER if w[0] in text]):
        k, (old, new) = random.choice(fits)
        text = lines[k].replace(old, new, 1)
        return lines if text.startswith("await") and "!=" in text else (*lines[:k], text, *lines[k + 1 :])
    if not places:
        return lines
    start, end = random.choice(places)
    if what == "drop":
        return lines[:start] + lines[end:]
    if what == "open" and lines[start].startswith("if"):
        return lines[:start] + lines[start + 1 : end - 1] + lines[end:]
    if what == "swap" and (follows := [p for p in places if p[0] == end]):
        return lines[:start] + lines[end : follows[0][1]] + lines[start:end] + lines[follows[0][1] :]
    more = tuple(_access(random, 5, WORDS)) if random.random() < 0.8 else (_data(random),)
    return lines[:start] + more + lines[start:]


def _with_barriers(random: Random, bodies: list[Lines]) -> list[Lines]:
    """The threads with a barrier of the CTA, for both of its threads; now and then for one."""
    barrier = random.choice(("barrier.sync 0;", "barrier.sync 0;", "bar.warp.sync 3;"))
    made = list(bodies)
    for k in range(0, len(made), 2):
        if random.random() < 0.7:
            for j in (k, k + 1):
                if random.random() < 0.95:
                    at = random.choice(
                        [0, len(made[j]), *(end for start, end in units(made[j]) if _is_outer(made[j], start))]
                    )
                    made[j] = (*made[j][:at], barrier, *made[j][at:])
    return made


def _is_outer(lines: Lines, at: int) -> bool:
    return sum(text.endswith("{") - text.startswith("}") for text in lines[:at]) == 0


# --- the comparison ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Comparison:
    """The answers about a program in both forms; ``what`` is empty if they do not contradict each other."""

    grid: Grid
    module: Result
    judge: EngineAnswer
    what: str

    @property
    def outcome(self) -> str:
        """What came of it, in a word or two."""
        if self.what:
            return f"contradiction: {self.what}"
        if self.judge.kinds is None:
            return "the judge left it open"
        return str(self.module.verdict)


def compare(grid: Grid, seconds: float = MODULE_SECONDS) -> Comparison:
    """Check a program in both forms; the answer about the module has so many seconds of the processor."""
    module = check_module(grid, seconds)
    judge = judge_threads(grid.draft)
    return Comparison(grid, module, judge, contradict(module, judge) or contradict_residency(grid, module))


def judge_threads(draft: Draft) -> EngineAnswer:
    """The answer of the explicit engine about the threads."""
    return run_engine("explicit", parse(draft.text(), "grid.litmus"), model_of(DEFAULT_MODEL), JUDGE_SECONDS)


def check_module(grid: Grid, seconds: float = MODULE_SECONDS) -> Result:
    """The answer about the module."""
    launch = launch_reader.from_object(grid.launch)
    with processor_time():
        return check_text(write_module(grid), "<ptx>", launch, Settings(timeout=seconds), Options())


def contradict(module: Result, judge: EngineAnswer) -> str:
    """The contradiction of two answers, if there is one: an error that was not found, or that is none."""
    if module.verdict == Verdict.ERROR or judge.verdict == "crash":
        return "crash"
    if judge.kinds is None:
        return ""
    found = {f.kind for f in module.findings if f.severity in COUNTED and f.code != NOT_RESIDENT}
    if module.verdict == Verdict.PROVED and judge.kinds:
        return "missed"
    return "invented" if not found <= judge.kinds else ""


def contradict_residency(grid: Grid, module: Result) -> str:
    """The contradiction about CTAs of which some begin only after others: each set of them has to come to its end."""
    told = any(f.code == NOT_RESIDENT for f in module.findings)
    if grid.cooperative:
        return "invented: not resident" if told else ""
    if not told and module.verdict != Verdict.PROVED:
        return ""
    stuck: list[bool | None] = []
    begun = [[some for n in range(1, len(part) + 1) for some in combinations(part, n)] for part in grid.parts]
    for groups in list(product(*begun))[:-1]:
        kinds = judge_threads(_only(grid, tuple(cta for some in groups for cta in some))).kinds
        stuck.append(None if kinds is None else "deadlock" in kinds)
    if not told:
        return "missed: not resident" if any(stuck) else ""
    return "" if any(s is not False for s in stuck) else "invented: not resident"


def _only(grid: Grid, resident: tuple[int, ...]) -> Draft:
    """The threads of some CTAs."""
    left = [(f"P{k}", role) for k, role in enumerate(grid.draft.roles) if k // grid.width in resident]
    names = {name for name, _ in left}
    objects = (text for text in grid.draft.objects if ":" not in text or text.partition(":")[0] in names)
    return replace(grid.draft, objects=tuple(objects), roles=tuple(role for _, role in left))


def smallest(comparison: Comparison, seconds: float, *, patience: float = 60.0) -> Comparison:
    """A smaller program with the same contradiction, where the module has so many seconds."""
    grid = comparison.grid

    def shows(draft: Draft) -> bool:
        if len(draft.roles) < len(grid.draft.roles) or draft.objects != grid.draft.objects:
            return False
        return compare(replace(grid, draft=draft), seconds).what == comparison.what

    return compare(replace(grid, draft=minimise(grid.draft, shows, seconds=patience)), seconds)


def report(comparison: Comparison) -> str:
    """A contradiction with the program."""
    module, judge, grid = comparison.module, comparison.judge, comparison.grid
    codes = ", ".join(f.code for f in module.findings)
    said = f"{comparison.what}: module {module.verdict} {codes}, explicit {sorted(judge.codes or ())} {judge.reason}"
    draft = replace(grid.draft, objects=tuple(text for text in grid.draft.objects if ":r" not in text))
    where = f", CTAs on each GPU {grid.gpus}" if grid.gpus else ""
    return (
        f"{said}\n{draft.text()}r{OWN} the number of the CTA, width {grid.width}, cooperative {grid.cooperative}{where}"
    )


def main() -> int:
    about = "compares what is said of random grids as modules and as litmus tests"
    parser = seed_parser(about, programs=200, seconds=MODULE_SECONDS)
    parser.add_argument("--gpus", type=int, choices=(1, 2), default=1, help="on how many GPUs (%(default)s)")
    chosen = parser.parse_args()

    def one(seed: int) -> tuple[str, str]:
        found = compare(generate(Random(seed), chosen.gpus), chosen.seconds)
        return found.outcome, report(smallest(found, chosen.seconds)) if found.what else ""

    return tell_outcomes(chosen, one, ("contradiction",))


if __name__ == "__main__":
    sys.exit(main())
