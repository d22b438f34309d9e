"""Mutates kernel sketches and litmus tests as people get them wrong, and checks them: nothing may crash or hang.

    python tests/checking/check/fuzz.py --count 20000 --seed 1

Where ``tests/frontend/litmus/fuzz.py`` breaks the text and ``tests/tools/cli/fuzz.py`` runs litmus tests, this one
changes what a sketch means (operands, counts, bounds, places, roles, nesting) and asks ``mcheck check``. A crash is an
internal error, an error without a place, a report that cannot be written, or an answer that takes far longer than its
limit.
"""

from __future__ import annotations

import argparse
import io
import random
import re
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from mcheck.checking.check.command import check_case
from mcheck.checking.run.case import Case, Options, Settings
from mcheck.checking.run.result import Result
from mcheck.checking.run.summary import summarize
from mcheck.report import checked
from mcheck.report.formats import sarif
from mcheck.report.lines import Printer

LITMUS = Path(__file__).parents[3] / "litmus"
LIMIT = 1.5
"""Seconds that an engine is given for a file."""
PATIENCE = 8.0
"""Seconds of the processor after which a file took too long: reading is not under the limit, but bounded."""
NUMBER = re.compile(r"(?<![\w.%])\d+(?![\w.])")
WORD = re.compile(r"[A-Za-z_%][\w%]*")
NUMBERS = (
    "0", "1", "-1", "2", "3", "7", "15", "17", "31", "32", "33", "64", "255", "1024", "65536", "1048576", "100000000",
    "2147483648", "4294967295", "4294967296", "1<<40", "1<<63", "18446744073709551615", "18446744073709551616",
    "99999999999999999999", "0x7fffffffffffffff", "(0-1)", "1/0", "5%0", "S", "N", "k", "%laneid", "%warpid",
)  # fmt: skip
NAMES = (
    "nowhere",
    "buf",
    "full",
    "empty",
    "r0",
    "%r1",
    "%p1",
    "%laneid",
    "%ctaid.x",
    "P0",
    "k",
    "S",
    "src",
    "dst",
    "_",
)
PLACES = (
    "cta 0, warp 99", "cta 0, warp 0, lane 32", "cta 0, warp 5..5", "cta 0, warp 7..3", "cta 0..1000000, warp 0",
    "cta 0, warp 0..4096", "cluster 0, cta 16", "cluster 0..9, cta 0..17, lane 0", "gpu 1", "gpu 0..99, cta 0",
    "lane 5", "warp 1", "cta 0", "cta 0, warp 0", "cta 0, warp 1..3, lane 0..7", "cta -1", "cta N", "cta 0, cta 1",
    "warp", "cta x",
)  # fmt: skip
LINES = (
    "for z in 0..100000000 { ld.shared.u32 r9, [buf]; }", "for z in 0..1000000 { for y in 0..1000000 { } }",
    "for z in 5..1 { bar.sync 0; }", "for z in 0..r0 { }", "loop: bra loop;",
    "again: ld.weak.u32 r9, [buf]; bra again;",
    "spin: add.u32 r8, r8, 1; setp.lt.u32 %p7, r8, 1000000; @%p7 bra spin;", "bra nowhere;",
    "ld.bogus.u32 r0, [buf];", "mbarrier.init.shared::cta.b64 [full], 0;",
    "mbarrier.init.shared::cta.b64 [full], 1048576;", "bar.sync 99;", "bar.sync 1, 33;", "barrier.cluster.arrive;",
    "barrier.cluster.wait;", "cp.async.bulk.wait_group 99999;", "cp.async.wait_group 0;",
    "mbarrier.inval.shared::cta.b64 [full];", "await ld.acquire.gpu.u32 r0, [buf] == 1;", "if (r0 == 1) {",
    "if (1) { bar.sync 0; } else {", "}", "{", "exit;", "ret;", "trap;", "const z = 1 << 62;", ".reg .u32 r77;",
    "fence.proxy.async.global.shared;", "st.shared.u32 [buf + 1000000000000], 1;", "st.shared.u32 [buf - 4], 1;",
    "ld.global.v4.u32 {r1, r2, r3, r4}, [src + 3];", "mapa.shared::cluster.u32 r5, buf, 7;",
    "ld.shared::cluster.u32 r5, [buf@9];", "@%p3 bar.sync 0;", "atom.add.acq_rel.gpu.u32 r5, [src], 1;",
    "griddepcontrol.wait;", "wgmma.wait_group.sync.aligned 0;", "bar.warp.sync 0xffffffff;", "bar.warp.sync 0;",
    "mbarrier.arrive.shared::cta.b64 _, [full], 4294967296;", "expect clean", "expect race",
    "exists (consumer[99]:r0 == 1)",
)  # fmt: skip
OBJECTS = (
    ".shared .align 128 .b8 big[1 << 40];", ".global .b8 huge[1 << 62];", ".shared .b8 neg[-1];",
    ".shared .b8 none[0];", ".global .u32 many[1000000] = {1, 2};", ".shared .align 3 .b8 odd[4];",
    ".shared .b64 full[1000000];", ".global .align 128 .b8 wide[100000][100000];", ".shared .f99 f;",
    ".global .u32 w = 99999999999;",
)  # fmt: skip


@dataclass(slots=True)
class Found:
    """Verdicts, and the texts that crashed with what they said."""

    log: bool = False
    verdicts: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    crashes: list[tuple[str, str]] = field(default_factory=list)
    slowest: float = 0.0
    slowest_text: str = ""

    def see(self, number: int, name: str, result: Result, said: str | None, seconds: float, text: str) -> None:
        """Counts the answer to a mutant; ``said`` is what is wrong with it."""
        if said is not None:
            self.crashes.append((f"{name} {said}", text))
        if seconds > self.slowest:
            self.slowest, self.slowest_text = seconds, text
        self.verdicts[result.verdict] += 1
        if result.problem is not None:
            self.errors[result.problem.code or type(result.problem).__name__] += 1
        if self.log and (said is not None or number % 500 == 0):
            print(f"{number}: {said or 'ok'} (slowest {self.slowest:.1f} s, {dict(self.verdicts)})", flush=True)

    def report(self, count: int, who: int, *, shown: int) -> int:
        """Prints the verdicts, the first crashes up to ``shown`` characters each, and the memory of the processes
        ``who``; the exit status.
        """
        for said, text in self.crashes[:10]:
            print(f"--- {said}\n{text[:shown]}")
        print(f"errors: {dict(self.errors.most_common())}")
        peak = resource.getrusage(who).ru_maxrss >> 10
        print(f"{count} mutations: {dict(self.verdicts)}, {len(self.crashes)} crashes, ", end="")
        print(f"slowest {self.slowest:.1f} s, at most {peak} MiB")
        return 1 if self.crashes else 0


Mutation = Callable[[random.Random, list[str], list[list[str]]], None]


def _at(rng: random.Random, lines: list[str]) -> int:
    """A line, most often one inside a role."""
    start = next((k for k, line in enumerate(lines) if re.match(r"\s*\w+@", line)), None)
    if start is None or start + 1 >= len(lines) or rng.random() < 0.1:
        return rng.randrange(len(lines))
    return rng.randrange(start + 1, len(lines))


def _drop(rng: random.Random, lines: list[str], _: list[list[str]]) -> None:
    del lines[_at(rng, lines)]


def _repeat(rng: random.Random, lines: list[str], _: list[list[str]]) -> None:
    lines.insert(_at(rng, lines), rng.choice(lines))


def _exchange(rng: random.Random, lines: list[str], _: list[list[str]]) -> None:
    a, b = _at(rng, lines), _at(rng, lines)
    lines[a], lines[b] = lines[b], lines[a]


def _borrow(rng: random.Random, lines: list[str], others: list[list[str]]) -> None:
    statements = [line for line in rng.choice(others) if line.strip().endswith(";")]
    lines.insert(_at(rng, lines), rng.choice(statements or [""]))


def _number(rng: random.Random, lines: list[str], _: list[list[str]]) -> None:
    here = [(k, m) for k, line in enumerate(lines) for m in NUMBER.finditer(line)]
    if here:
        k, m = rng.choice(here)
        lines[k] = lines[k][: m.start()] + rng.choice(NUMBERS) + lines[k][m.end() :]


def _small(rng: random.Random, lines: list[str], _: list[list[str]]) -> None:
    """A number that is a little wrong: the text stays legal more often than not."""
    here = [(k, m) for k, line in enumerate(lines) for m in NUMBER.finditer(line)]
    if here:
        k, m = rng.choice(here)
        value = max(int(m[0]) + rng.choice((-2, -1, 1, 2)), 0) if rng.random() < 0.7 else int(m[0]) * 2
        lines[k] = lines[k][: m.start()] + str(value) + lines[k][m.end() :]


def _neighbours(rng: random.Random, lines: list[str], _: list[list[str]]) -> None:
    """Exchanges two statements that follow each other."""
    here = [k for k in range(len(lines) - 1) if lines[k].strip().endswith(";") and lines[k + 1].strip().endswith(";")]
    if here:
        k = rng.choice(here)
        lines[k], lines[k + 1] = lines[k + 1], lines[k]


def _forget(rng: random.Random, lines: list[str], _: list[list[str]]) -> None:
    """Drops a statement."""
    here = [k for k, line in enumerate(lines) if line.strip().endswith(";") and not line.lstrip().startswith(".")]
    if here:
        del lines[rng.choice(here)]


def _name(rng: random.Random, lines: list[str], _: list[list[str]]) -> None:
    here = [(k, m) for k, line in enumerate(lines) for m in WORD.finditer(line)]
    if here:
        k, m = rng.choice(here)
        other = rng.choice((rng.choice(NAMES), rng.choice(here)[1][0], m[0][::-1], m[0] + "x"))
        lines[k] = lines[k][: m.start()] + other + lines[k][m.end() :]


def _operands(rng: random.Random, lines: list[str], _: list[list[str]]) -> None:
    """Exchanges, drops or doubles an operand of an instruction."""
    here = [k for k, line in enumerate(lines) if line.count(",") and line.strip().endswith(";")]
    if not here:
        return
    k = rng.choice(here)
    head, _blank, tail = lines[k].strip().partition(" ")
    parts = [part.strip() for part in tail.rstrip(";").split(",")]
    a, b = rng.randrange(len(parts)), rng.randrange(len(parts))
    match rng.randrange(3):
        case 0:
            parts[a], parts[b] = parts[b], parts[a]
        case 1:
            del parts[a]
        case _:
            parts.insert(a, parts[b])
    lines[k] = f"  {head} {', '.join(parts)};"


def _qualifier(rng: random.Random, lines: list[str], _: list[list[str]]) -> None:
    """Drops, doubles or exchanges a qualifier of an instruction."""
    here = [k for k, line in enumerate(lines) if re.match(r"\s*(await )?[a-z]+[\w:]*\.[\w:.]+ ", line)]
    if not here:
        return
    k = rng.choice(here)
    parts = lines[k].split(".")
    a = rng.randrange(1, len(parts))
    match rng.randrange(3):
        case 0:
            del parts[a]
        case 1:
            parts.insert(a, parts[a])
        case _:
            parts[a] = rng.choice(rng.choice(lines).split(".")).strip() or "u32"
    lines[k] = ".".join(parts)


def _place(rng: random.Random, lines: list[str], _: list[list[str]]) -> None:
    here = [k for k, line in enumerate(lines) if re.match(r"\s*\w+@", line)]
    if here:
        k = rng.choice(here)
        name = lines[k].split("@")[0]
        lines[k] = f"{name}@{rng.choice(PLACES)} {{"


def _role(rng: random.Random, lines: list[str], _: list[list[str]]) -> None:
    """Repeats a whole role, under its name or another, or takes one away."""
    starts = [k for k, line in enumerate(lines) if re.match(r"\s*\w+@", line)]
    if not starts:
        return
    start = rng.choice(starts)
    end = next((k for k in range(start, len(lines)) if lines[k].startswith("}")), len(lines) - 1)
    role = lines[start : end + 1]
    if rng.random() < 0.3:
        del lines[start : end + 1]
        return
    if rng.random() < 0.5:
        role = [role[0].replace("@", "2@", 1), *role[1:]]
    lines[end + 1 : end + 1] = role * rng.choice((1, 1, 1, 50))


def _insert(rng: random.Random, lines: list[str], _: list[list[str]]) -> None:
    lines.insert(_at(rng, lines), rng.choice(LINES))


def _object(rng: random.Random, lines: list[str], _: list[list[str]]) -> None:
    here = [k for k, line in enumerate(lines) if line.lstrip().startswith((".shared", ".global", "{"))]
    if here:
        lines.insert(rng.choice(here) + 1, rng.choice(OBJECTS))


def _nest(rng: random.Random, lines: list[str], _: list[list[str]]) -> None:
    """Wraps a line in many loops, conditions or parentheses."""
    k = _at(rng, lines)
    deep = rng.choice((2, 5, 20, 300, 3000))
    match rng.randrange(4):
        case 0:
            lines[k] = (
                "".join(f"for z{d} in 0..{rng.choice((1, 2, 10))} {{ " for d in range(deep)) + lines[k] + "}" * deep
            )
        case 1:
            lines[k] = "if (1) { " * deep + lines[k] + " }" * deep
        case 2:
            lines[k] = NUMBER.sub(lambda m: "(" * deep + m[0] + ")" * deep, lines[k], count=1)
        case _:
            lines[k] = NUMBER.sub(lambda m: m[0] + " + 1" * deep, lines[k], count=1)


MUTATIONS: tuple[Mutation, ...] = (
    _drop, _repeat, _exchange, _borrow, _number, _number, _small, _small, _small, _neighbours, _neighbours, _forget,
    _forget, _name, _operands, _operands, _qualifier, _place, _role, _insert, _insert, _object, _nest,
)  # fmt: skip


def mutate(rng: random.Random, text: str, others: list[list[str]]) -> str:
    """``text`` with one to three mistakes."""
    lines = text.split("\n")
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        rng.choice(MUTATIONS)(rng, lines, others)
        lines = lines or [""]
    return "\n".join(lines)


def complaint(result: Result, seconds: float) -> str | None:
    """What is wrong with an answer, whatever it is."""
    if result.crashed:
        return f"{result.reason}\n{result.debug}"
    if result.verdict == "error" and (result.problem is None or result.problem.span is None):
        return f"an error without a place: {result.reason}"
    if result.verdict in ("unknown", "error") and not result.reason:
        return f"{result.verdict} without a reason"
    if seconds > PATIENCE:
        return f"took {seconds:.1f} s"
    counts = summarize([result])
    report = checked.TextReport(Printer(io.StringIO(), color=False), details=True, quiet=False)
    report.result(result)
    sarif.document([result])
    checked.junit([result])
    checked.github([result], counts)
    return None


def texts() -> list[str]:
    """Kernel sketches and litmus tests, three of the first to one of the others."""
    sketches = [p.read_text(encoding="utf-8") for p in sorted((LITMUS / "kernels").glob("*.litmus"))]
    tests = [p.read_text(encoding="utf-8") for p in sorted(LITMUS.rglob("*.litmus")) if p.parent.name != "kernels"]
    return sketches * max(1, 3 * len(tests) // len(sketches)) + tests


def run(count: int, seed: int, first: int = 0, log: bool = False) -> Found:
    """``count`` mutants from the ``first`` on; each has a generator of its own, so that it can be had alone."""
    all_texts = texts()
    others = [text.split("\n") for text in all_texts]
    found = Found(log)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "mutated.litmus")
        for number in range(first, first + count):
            rng = random.Random(f"{seed}:{number}")
            text = mutate(rng, rng.choice(all_texts), others)
            path.write_text(text, encoding="utf-8", errors="surrogatepass")
            settings = Settings(profile=rng.choice(("ptx", "strict", "permissive")), timeout=LIMIT)
            options = Options(engine=rng.choice(("protocol", "protocol", "auto")))
            start = time.process_time()
            result = check_case(Case(str(path)), settings, options)
            seconds = time.process_time() - start
            found.see(number, f"{seed}:{number}", result, complaint(result, seconds), seconds, text)
    return found


def main() -> int:
    """Prints the verdicts and the first crashes; exit status 1 if there are any."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first mutant")
    parser.add_argument("--memory", type=int, default=3072, help="mebibytes that the process may take")
    options = parser.parse_args()
    limit = options.memory << 20
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    found = run(options.count, options.seed, options.first, log=True)
    return found.report(options.count, resource.RUSAGE_SELF, shown=6000)


if __name__ == "__main__":
    sys.exit(main())
