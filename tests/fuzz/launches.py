"""Random sequences of launches, each as a module with its launch file and as one litmus test of all threads.

    python -m tests.fuzz.launches --programs 200 --seed 1

Two or three launches of one or two tiny kernels, in stream order, with and without programmatic dependent launch, share
their buffers. The kernels load, store, draw tickets, wait for words and branch on what they read; some follow a plan
that is damaged now and then. In the litmus test a launch is its threads, behind one more thread that begins it:

* the launch has ended when each of its threads has set a flag of its own, by a release at its end;
* a launch without the attribute begins when all before it have ended;
* one with it begins when each CTA before it has executed ``launch_dependents`` or is over, which releases nothing but
  by a fence (PTX ISA 9.4, griddepcontrol), and behind what the last launch without the attribute comes after;
* ``griddepcontrol.wait`` waits until the launch before has ended, with an acquire (9.7.13.13; open questions Q36).

An engine then answers about one program, and what it says of single launches, of what they leave in memory and of
their order shares nothing with that. A launch need not begin before the ones in front of it have ended, so the first
launches have to end without the others, too.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count
from random import Random
from typing import Any

from mcheck.base.budget import processor_time
from mcheck.checking.check.modules import check_text
from mcheck.checking.run.case import Options, Settings
from mcheck.checking.run.result import Result
from mcheck.frontend.litmus import parse
from mcheck.frontend.ptx import launch_reader
from tests.fuzz.differential import DEFAULT_MODEL, EngineAnswer, model_of, run_engine
from tests.fuzz.draft import Draft, Role, units
from tests.fuzz.grids import contradict
from tests.fuzz.judged_answers import seed_parser, tell_outcomes
from tests.fuzz.minimise import minimise

BUFFERS = ("x", "y", "d", "e")
"""The first two for words by which threads may synchronise, the others for data."""
SIZE = 8
"""Words of a buffer."""
TRIGGER, WAIT = "griddepcontrol.launch_dependents;", "griddepcontrol.wait;"
BARRIER, FENCE = "barrier.sync 0;", "fence.acq_rel.gpu;"
REGISTERS, TESTED = 8, 2
"""The registers of a thread; the first of them are those on which it may branch, zero at first."""
MODULE_SECONDS = 3.0
JUDGE_SECONDS = 2.0
JUDGES = ("explicit", "protocol")

Lines = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OneLaunch:
    """A launch of a kernel, whose CTAs are ``width`` warps with one thread each; ``buffers`` are what its parameters
    point to.
    """

    kernel: int
    ctas: int
    width: int
    programmatic: bool
    buffers: tuple[str, ...] = BUFFERS

    @property
    def threads(self) -> int:
        """The number of its threads."""
        return self.ctas * self.width


@dataclass(frozen=True, slots=True)
class Sequence:
    """Launches in stream order. The roles of ``draft`` are the kernels: lines of a litmus test in which ``me`` is the
    number of the thread in its grid and the names of buffers are those of parameters.
    """

    draft: Draft
    launches: tuple[OneLaunch, ...]

    def before(self, number: int) -> Sequence:
        """The first launches alone."""
        return replace(self, launches=self.launches[:number])

    def follows_plain(self, number: int) -> range:
        """The launches that have ended when a launch begins, whatever they do."""
        plain = max((k for k in range(1, number + 1) if not self.launches[k].programmatic), default=0)
        return range(plain)


# --- as a module ------------------------------------------------------------------------------------------------------


def write_module(sequence: Sequence) -> str:
    """The kernels as entries of a module."""
    lines = [".version 8.7", ".target sm_90", ".address_size 64"]
    params = ", ".join(f".param .u64 {name}" for name in BUFFERS)
    for role in sequence.draft.roles:
        lines += [
            f".visible .entry {role.name}({params})",
            "{",
            ".reg .pred %p<2>;",
            f".reg .b32 %r<{REGISTERS}>, %k<4>;",
        ]
        lines += [f".reg .b64 %a<{len(BUFFERS)}>, %b<2>;"]
        lines += [f"ld.param.u64 %a{k}, [{name}];" for k, name in enumerate(BUFFERS)]
        lines += [f"mov.u32 %r{k}, 0;" for k in range(REGISTERS)]
        lines += ["mov.u32 %k0, %ctaid.x;", "mov.u32 %k1, %ntid.x;", "mov.u32 %k2, %tid.x;"]
        lines += ["and.b32 %k3, %k2, 31;", "setp.ne.u32 %p0, %k3, 0;", "@%p0 ret;"]
        lines += ["shr.u32 %k1, %k1, 5;", "shr.u32 %k2, %k2, 5;", "mad.lo.u32 %k3, %k0, %k1, %k2;"]
        lines += [*_as_ptx(role.lines), "ret;", "}"]
    return "\n".join([*lines, ""])


def _as_ptx(body: Lines) -> Iterator[str]:
    """The lines of a kernel as PTX: blocks and waits become branches."""
    labels = count()
    ends: list[str] = []
    for line in body:
        text = re.sub(r"\br(\d)\b", r"%r\1", line).replace(", me;", ", %k3;")
        if address := ADDRESS.search(text):
            yield f"mul.wide.u32 %b0, %k3, {4 * int(address['stride'] or 0)};"
            yield f"add.u64 %b1, %a{BUFFERS.index(address['name'])}, %b0;"
            text = ADDRESS.sub(f"[%b1+{4 * int(address['word'] or 0)}]", text)
        if test := re.fullmatch(r"if \((\S+) (==|!=) (\d+)\) \{", text):
            label = f"L{next(labels)}"
            ends.append(label)
            tested = "%k3" if test[1] == "me" else test[1]
            yield f"setp.{'ne' if test[2] == '==' else 'eq'}.u32 %p1, {tested}, {test[3]};"
            yield f"@%p1 bra {label};"
        elif line == "}":
            yield f"{ends.pop()}:"
        elif wait := re.fullmatch(r"await (ld\S+ (%r\d), \S+) == (\d+);", text):
            label = f"L{next(labels)}"
            yield f"{label}:"
            yield f"{wait[1]};"
            yield f"setp.ne.u32 %p1, {wait[2]}, {wait[3]};"
            yield f"@%p1 bra {label};"
        else:
            yield text


ADDRESS = re.compile(r"\[(?P<name>\w)(\+(?P<stride>\d+)\*me)?(\+(?P<word>\d+))?\]")


def launch_file(sequence: Sequence) -> dict[str, Any]:
    """The launches of the module."""
    launches = [
        {
            "entry": sequence.draft.roles[one.kernel].name, "grid": one.ctas, "block": 32 * one.width,
            "programmatic": one.programmatic, "cooperative": not one.programmatic,
            "params": {name: {"buffer": held} for name, held in zip(BUFFERS, one.buffers, strict=True)},
        }
        for one in sequence.launches
    ]  # fmt: skip
    return {
        "launches": launches,
        "buffers": {name: {"bytes": 4 * SIZE, "init": {"hex": "00" * 4 * SIZE}} for name in BUFFERS},
    }


# --- as a litmus test -------------------------------------------------------------------------------------------------


def write_test(sequence: Sequence) -> Draft:
    """All threads of all launches, and the threads that begin launches."""
    objects = [f".global .align 16 .u32 {name}[{SIZE}];" for name in BUFFERS]
    roles: list[Role] = []
    launches = sequence.launches
    cta = count()
    for k, one in enumerate(launches):
        early = k + 1 < len(launches) and launches[k + 1].programmatic
        objects += [f".global .u32 done{k} = 0;", f".global .u32 start{k} = 0;"]
        for c in range(one.ctas):
            place, go = next(cta), f"go{k}_{c}"
            objects.append(f".global .u32 {go} = 0;")
            for warp in range(one.width):
                me, over = c * one.width + warp, f"over{k}_{c}_{warp}"
                objects.append(f".global .u32 {over} = 0;")
                lines = [_await(f"start{k}")] if k else []
                for line in _of_thread(sequence.draft.roles[one.kernel].lines, me, one.buffers):
                    if line == TRIGGER:
                        lines += [f"red.relaxed.gpu.global.add.u32 [{go}], {one.width};"] if early else []
                    elif line == WAIT:
                        lines += [_await(f"done{k - 1}")] if one.programmatic else []
                    else:
                        lines.append(line)
                lines += [f"red.relaxed.gpu.global.add.u32 [{go}], 1;"] if early else []
                lines.append(_set(over))
                roles.append(Role(f"L{k}T{me}", f"cta {place}, warp {warp}, lane 0", tuple(lines)))
    for k, one in enumerate(launches):
        if k + 1 < len(launches):
            ended = [_await(f"over{k}_{c}_{warp}") for c in range(one.ctas) for warp in range(one.width)]
            roles.append(Role(f"done{k}_", f"cta {next(cta)}", (*ended, _set(f"done{k}"))))
        if k:
            begins = [_await(f"done{j}") for j in sequence.follows_plain(k)]
            if one.programmatic:
                last = launches[k - 1]
                begins += [_await(f"go{k - 1}_{c}", ">=", last.width) for c in range(last.ctas)]
            roles.append(Role(f"start{k}_", f"cta {next(cta)}", (*begins, _set(f"start{k}"))))
    values = (f"{role.name}:r{r} = 0;" for role in roles if role.name.startswith("L") for r in range(TESTED))
    return Draft("launches", DEFAULT_MODEL, (*objects, *values), tuple(roles))


def _await(flag: str, comparison: str = "==", value: int = 1) -> str:
    return f"await ld.acquire.gpu.global.u32 r9, [{flag}] {comparison} {value};"


def _set(flag: str) -> str:
    return f"st.release.gpu.global.u32 [{flag}], 1;"


def _of_thread(body: Lines, me: int, buffers: tuple[str, ...]) -> Iterator[str]:
    """The lines of a kernel that a thread executes, with its addresses."""

    def address(found: re.Match[str]) -> str:
        word = int(found["stride"] or 0) * me + int(found["word"] or 0)
        return f"[{buffers[BUFFERS.index(found['name'])]} + {4 * word}]"

    opened: list[tuple[bool, bool]] = []  # whether the block is one of the test, and whether the thread leaves it out
    for line in body:
        shown = not any(out for _, out in opened)
        if line.endswith("{"):
            mine = re.fullmatch(r"if \(me (==|!=) (\d+)\) \{", line)
            shown = shown and mine is None
            opened.append((shown, mine is not None and (int(mine[2]) == me) != (mine[1] == "==")))
        elif line == "}":
            shown, _ = opened.pop()
        if shown:
            yield ADDRESS.sub(address, line).replace(", me;", f", {me};")


# --- the generator ----------------------------------------------------------------------------------------------------


def generate(random: Random) -> Sequence:
    """A random sequence of launches."""
    number = random.choices((2, 3), (3, 2))[0]
    shapes = [random.choices(((1, 1), (2, 1), (1, 2), (3, 1), (2, 2)), (3, 6, 3, 1, 1))[0] for _ in range(number)]
    if number == 3:
        shapes = [shape if shape[0] * shape[1] < 3 else (2, 1) for shape in shapes]
    plan = random.choice(PLANS)
    bodies = plan(random, number, [c * w for c, w in shapes])
    for _ in range(random.choices((0, 1, 2), (2, 3, 2))[0]):
        k = random.randrange(len(bodies))
        bodies[k] = damage(random, bodies[k], max(c * w for c, w in shapes))
    launches = []
    for k, (ctas, width) in enumerate(shapes):
        held = list(BUFFERS)
        if random.random() < 0.2:
            a = random.choice((0, 2))
            held[a : a + 2] = reversed(held[a : a + 2])
        early = k > 0 and random.random() < 0.6
        launches.append(OneLaunch(min(k, len(bodies) - 1), ctas, width, early, tuple(held)))
    if random.random() < 0.25:
        launches[-1] = replace(launches[-1], kernel=0)
    roles = tuple(Role(f"k{k}", "", body) for k, body in enumerate(bodies))
    return Sequence(Draft("kernels", DEFAULT_MODEL, (), roles), tuple(launches))


def _data(random: Random, names: str = "ddde") -> str:
    place = random.choice(("", "+1*me", "+1*me", "+1*me", "+2*me", "+1*me+1", "+1"))
    name = random.choice(names)
    if random.random() < 0.5:
        return f"ld.global.u32 r7, [{name}{place}];"
    # threads of a CTA that store one value to one place count as one: they store their numbers
    return f"st.global.u32 [{name}{place}], {random.randint(1, 2) if 'me' in place else 'me'};"


def _word(random: Random, register: int) -> Lines:
    """An access of a word by which threads may synchronise."""
    name, scope = random.choice("xxy"), random.choices(("gpu", "cta", "sys"), (10, 1, 1))[0]
    what = random.choices(("load", "store", "add", "exch", "cas", "red", "await", "weak"), (5, 5, 4, 1, 2, 2, 2, 1))[0]
    match what:
        case "load":
            return (f"ld.{random.choice(('acquire', 'relaxed'))}.{scope}.global.u32 r{register}, [{name}];",)
        case "store":
            sem, value = random.choice(("release", "relaxed")), random.randint(0, 2)
            return (f"st.{sem}.{scope}.global.u32 [{name}], {value};",)
        case "add" | "exch":
            sem, width = random.choice(("acq_rel", "relaxed")), "u32" if what == "add" else "b32"
            return (f"atom.{sem}.{scope}.global.{what}.{width} r{register}, [{name}], {random.randint(1, 2)};",)
        case "cas":
            return (f"atom.acq_rel.{scope}.global.cas.b32 r{register}, [{name}], 0, 1;",)
        case "red":
            return (f"red.{random.choice(('release', 'relaxed'))}.{scope}.global.add.u32 [{name}], 1;",)
        case "await":
            return (f"await ld.acquire.{scope}.global.u32 r{register}, [{name}] == {random.randint(0, 2)};",)
    return (f"ld.global.u32 r{register}, [{name}];",)


def _some(random: Random, threads: int, register: int) -> Lines:
    """A line, or a block of a few."""
    what = random.choices(("data", "word", "grid", "fence", "barrier", "one", "read"), (5, 4, 2, 1, 1, 2, 2))[0]
    if what == "data":
        return (_data(random),)
    if what == "word":
        return _word(random, register)
    if what == "grid":
        return (random.choice((TRIGGER, WAIT)),)
    if what == "fence":
        return (random.choice((FENCE, FENCE, "fence.sc.gpu;", "fence.acq_rel.cta;")),)
    if what == "barrier":
        return (BARRIER,)
    inner = _data(random) if random.random() < 0.6 else random.choice((*_word(random, register), TRIGGER, WAIT))
    if what == "one":
        return (f"if (me {random.choice(('==', '==', '!='))} {random.randrange(threads)}) {{", inner, "}")
    return (f"if (r{random.randrange(2)} {random.choice(('==', '!='))} {random.randint(0, 2)}) {{", inner, "}")


def _unplanned(random: Random, number: int, threads: list[int]) -> list[Lines]:
    """Kernels of a few lines."""
    kernels = random.choice((1, 2, number))
    found = []
    for k in range(kernels):
        lines: list[str] = []
        for register in range(random.randint(1, 4)):
            lines += _some(random, threads[k], min(register, 1))
        found.append(tuple(lines))
    return found


def _chain(random: Random, number: int, threads: list[int]) -> list[Lines]:
    """Each launch reads what the one before wrote, behind its wait, and lets the next one begin."""
    found = []
    for k in range(number):
        source, target = ("d", "e")[k % 2], ("e", "d")[k % 2]
        shift = random.choice(("+1*me", "+1*me", "+1*me+1", ""))
        lines = [WAIT, f"ld.global.u32 r7, [{source}{shift}];", f"st.global.u32 [{target}+1*me], {k + 1};"]
        if random.random() < 0.4:
            lines[1:1] = random.choice(([BARRIER], [FENCE], []))
        if random.random() < 0.3:
            lines = ["if (me == 0) {", WAIT, "}", *([BARRIER] if random.random() < 0.7 else []), *lines[1:]]
        trigger = random.choice(([TRIGGER], [FENCE, TRIGGER], [BARRIER, TRIGGER], [FENCE, BARRIER, TRIGGER], []))
        if random.random() < 0.3 and trigger:
            trigger = [*trigger[:-1], f"if (me == {random.randrange(threads[k])}) {{", TRIGGER, "}"]
        at = random.choice((0, len(lines), len(lines)))
        lines[at:at] = trigger
        found.append(tuple(lines))
    return found


def _counters(random: Random, number: int, threads: list[int]) -> list[Lines]:
    """Threads draw tickets; the last one resets, or leaves, the counter, and later launches use what is left."""
    last = threads[0] - 1
    draw = random.choice(
        ("atom.acq_rel.gpu.global.add.u32 r0, [x], 1;", f"atom.acq_rel.gpu.global.inc.u32 r0, [x], {last};")
    )
    leave = random.choice(
        ("st.relaxed.gpu.global.u32 [x], 0;", "st.global.u32 [x], 0;", "st.relaxed.gpu.global.u32 [x], 2;",
         "st.relaxed.gpu.global.u32 [y], 1;", "red.relaxed.gpu.global.add.u32 [x], 1;")
    )  # fmt: skip
    first = ("st.global.u32 [d+1*me], 1;", draw, f"if (r0 == {last}) {{", "ld.global.u32 r7, [d];", leave, "}")
    found: list[Lines] = [first]
    for _ in range(random.choice((0, number - 1))):
        word = random.choice(("x", "x", "y", "d"))
        read = random.choice(
            (f"ld.relaxed.gpu.global.u32 r1, [{word}];", f"atom.acq_rel.gpu.global.add.u32 r1, [{word}], 1;",
             f"ld.global.u32 r1, [{word}];")
        )  # fmt: skip
        wait = random.choice(((WAIT,), (WAIT,), ()))
        value = random.choice((0, 0, 1, 2, threads[0]))
        use = random.choice(("st.global.u32 [e], me;", "st.global.u32 [d+1], me;", "ld.global.u32 r7, [d+1*me];"))
        test = random.choice(("==", "==", "!="))
        found.append((*wait, read, f"if (r1 {test} {value}) {{", use, "}"))
    return found


def _flags(random: Random, number: int, threads: list[int]) -> list[Lines]:
    """One launch sets a flag, the next ones wait for it."""
    set_flag = random.choice(("st.release.gpu.global.u32 [x], 1;", "red.release.gpu.global.add.u32 [x], 1;"))
    first = [TRIGGER, "st.global.u32 [d+1*me], 1;", "if (me == 0) {", set_flag, "}"]
    if random.random() < 0.5:
        first = [TRIGGER, "if (me == 0) {", "st.global.u32 [d], 1;", set_flag, "}"]
    found = [tuple(first)]
    for _ in range(number - 1):
        wait = random.choice(((WAIT,), (), ()))
        value = random.choice((1, 1, 1, 0, 2))
        look = random.choice(
            (f"await ld.acquire.gpu.global.u32 r0, [x] == {value};", "ld.acquire.gpu.global.u32 r0, [x];")
        )
        use = random.choice(("ld.global.u32 r7, [d];", "st.global.u32 [d+1*me], 2;", "ld.global.u32 r7, [d+1*me];"))
        found.append((*wait, look, f"if (r0 == {value}) {{", use, "}"))
    return found


def damage(random: Random, lines: Lines, threads: int) -> Lines:
    """The lines with a statement dropped, moved or added."""
    places = units(lines)
    what = random.choices(("drop", "swap", "add"), (2, 2, 3))[0]
    if what == "add" or not places:
        at = random.choice([0, len(lines), *(end for start, end in places if _is_outer(lines, start))])
        return lines[:at] + _some(random, threads, random.randrange(2)) + lines[at:]
    start, end = random.choice(places)
    if what == "swap" and (follows := [p for p in places if p[0] == end]):
        return lines[:start] + lines[end : follows[0][1]] + lines[start:end] + lines[follows[0][1] :]
    return lines[:start] + lines[end:]


def _is_outer(lines: Lines, at: int) -> bool:
    return sum(text.endswith("{") - text.startswith("}") for text in lines[:at]) == 0


PLANS: tuple[Callable[[Random, int, list[int]], list[Lines]], ...] = (
    _unplanned,
    _unplanned,
    _chain,
    _chain,
    _counters,
    _flags,
)


# --- the comparison ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Comparison:
    """The answers about a sequence in both forms; ``what`` is empty if they do not contradict each other."""

    sequence: Sequence
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
        return f"{self.module.verdict}, {'wrong' if self.judge.kinds else 'right'}"


def compare(sequence: Sequence, seconds: float = MODULE_SECONDS) -> Comparison:
    """Check launches in both forms; the answer about the module has so many seconds of the processor."""
    launch = launch_reader.from_object(launch_file(sequence))
    with processor_time():
        module = check_text(write_module(sequence), "<ptx>", launch, Settings(timeout=seconds), Options())
    judge = judge_threads(sequence)
    return Comparison(sequence, module, judge, contradict(module, judge))


def judge_threads(sequence: Sequence) -> EngineAnswer:
    """The answer about all threads, with the deadlocks of the first launches alone."""
    judge = _judge(sequence)
    waits = any(line.startswith("await") for role in sequence.draft.roles for line in role.lines)
    for number in range(1, len(sequence.launches)) if waits and judge.kinds is not None else ():
        first = _judge(sequence.before(number))
        if first.kinds is None or judge.kinds is None:
            return first
        judge = replace(judge, kinds=judge.kinds | (first.kinds & {"deadlock"}))
    return judge


def _judge(sequence: Sequence) -> EngineAnswer:
    program, model = parse(write_test(sequence).text(), "launches.litmus"), model_of(DEFAULT_MODEL)
    answers = (run_engine(engine, program, model, JUDGE_SECONDS) for engine in JUDGES)
    given = next(answers)
    return given if given.kinds is not None else next(answers)


def smallest(comparison: Comparison, seconds: float, *, patience: float = 60.0) -> Comparison:
    """A smaller sequence with the same contradiction."""
    sequence = comparison.sequence

    def shows(draft: Draft) -> bool:
        if len(draft.roles) < len(sequence.draft.roles):
            return False
        return compare(replace(sequence, draft=draft), seconds).what == comparison.what

    return compare(replace(sequence, draft=minimise(sequence.draft, shows, seconds=patience)), seconds)


def report(comparison: Comparison) -> str:
    """A contradiction with the kernels and the launches."""
    module, judge = comparison.module, comparison.judge
    codes = ", ".join(f.code for f in module.findings)
    said = f"{comparison.what}: module {module.verdict} {codes}, judge {sorted(judge.codes or ())} {judge.reason}"
    return f"{said}\n{comparison.sequence.draft.text()}" + "\n".join(map(str, comparison.sequence.launches))


def main() -> int:
    about = "compares what is said of random launches and of their threads"
    chosen = seed_parser(about, programs=200, seconds=MODULE_SECONDS).parse_args()

    def one(seed: int) -> tuple[str, str]:
        found = compare(generate(Random(seed)), chosen.seconds)
        return found.outcome, report(smallest(found, chosen.seconds)) if found.what else ""

    return tell_outcomes(chosen, one, ("contradiction",))


if __name__ == "__main__":
    sys.exit(main())
