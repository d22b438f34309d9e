"""mcheck beside the tools that answer the same questions, in one table: verdicts, seconds of the processor, commands.

    python -m benchmarks.peers [--only NAME,…] [--dartagnan CHECKOUT] [--herd7 PATH] [--spin PATH] [--sentryward PYTHON]
                               [--families FILE.py] [--limit SECONDS] [--twins] [--json FILE]

Dartagnan answers the rows of its own tables; herd7 the families of tests at every size (a row each); SPIN the rings of
``benchmarks/scale.py`` with a step per instruction and with steps merged; SentryWard the launches and modules of
``tests/simt``. Each is looked for on PATH or where an option says; the row of one that is not there says how to get it.
mcheck answers the same right after, as a command too. Seconds are of the processor, start-up included, since they count
for whoever waits, and other load on the machine hardly changes them; ``wall`` are those by the clock. Rows that one of
the two did not answer are left out of the counts and of the seconds; below the table stands why.

Exit status 1 if Dartagnan, herd7 or SPIN differs from mcheck (SentryWard has no memory model, and is told apart by the
answers that are known), or if a mark is missed: ``DARTAGNAN`` times its speed on all rows together, and herd7's within
``SMALL`` times where it takes less than ``NEGLIGIBLE`` seconds, and ahead above.
"""

from __future__ import annotations

import argparse
import compileall
import json
import re
import shlex
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from benchmarks import compat, dartagnan, families, herd7, promela, scale, sentryward
from benchmarks.processes import Finished

ROOT = Path(__file__).resolve().parent.parent
DARTAGNAN = 20.0
SMALL = 5.0
NEGLIGIBLE = 0.5
VERDICTS = ("--verdict-only", "--jobs", "1")
"""What mcheck is asked beside Dartagnan: the verdicts alone, as Dartagnan gives them, in one process, as it does."""
TESTED = re.compile(r"^\w+ +(?P<verdict>pass|fail|unknown) (?P<path>.+\.litmus)", re.MULTILINE)
ENOUGH = 60.0
"""Seconds of the processor that mcheck may take for a ring, whatever SPIN may."""
MEMORY = 4096
"""MiB that SPIN and SentryWard may take."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds of the processor and by the clock."""

    processor: float = 0.0
    wall: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.processor + other.processor, self.wall + other.wall)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What was asked of a peer and of mcheck: ``different`` and ``left_out`` name what is not alike, and why.

    ``stopped`` says that the peer was stopped, so that its seconds are a lower bound; ``least`` is the ratio that is
    aimed at.
    """

    peer: str
    what: str
    alike: int = 0
    different: tuple[str, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    theirs: Cost = Cost()
    ours: Cost = Cost()
    stopped: bool = False
    least: float | None = None
    command: str = ""

    @property
    def ratio(self) -> float | None:
        """The peer's seconds of the processor for one of mcheck's."""
        return self.theirs.processor / self.ours.processor if self.ours.processor else None

    @property
    def missed(self) -> bool:
        """Whether mcheck is slower than it is meant to be; a peer that was stopped is never faster."""
        return self.least is not None and not self.stopped and self.ratio is not None and self.ratio < self.least


@dataclass(frozen=True, slots=True)
class Absent:
    """A peer that is not there, and how to get it."""

    peer: str
    why: str


def cost(done: Finished) -> Cost:
    """What a process took."""
    return Cost(done.processor, done.wall)


def together(rows: Sequence[Row], what: str, least: float | None = None) -> Row:
    """The sums of rows of one peer, but for those that it did not finish."""
    answered = [row for row in rows if not row.stopped]
    return Row(
        peer=rows[0].peer,
        what=what,
        alike=sum(row.alike for row in rows),
        left_out=sum((Counter(row.left_out) for row in rows), Counter()),
        theirs=sum((row.theirs for row in answered), Cost()),
        ours=sum((row.ours for row in answered), Cost()),
        different=tuple(name for row in rows for name in row.different),
        least=least,
    )


def compare_answers(theirs: Mapping[str, str], ours: Mapping[str, str]) -> tuple[int, tuple[str, ...], Counter[str]]:
    """How many verdicts of two tools are alike, which are not, and why the others are left out."""
    alike, different, left_out = 0, [], Counter[str]()
    for name, said in ours.items():
        other = theirs.get(name, "no answer")
        for tool, word in (("the peer", other), ("mcheck", said)):
            if word not in {"pass", "fail"}:
                left_out[f"{tool}: {word}"] += 1
                break
        else:
            alike += other == said
            different += [] if other == said else [f"{name}: {other}, mcheck {said}"]
    return alike, tuple(different), left_out


def read_verdicts(output: str) -> dict[str, str]:
    """The verdict of each test in a report of ``mcheck run``, which has a line ``ok pass PATH`` for each."""
    return {found["path"]: found["verdict"] for found in TESTED.finditer(output)}


def beside_dartagnan(checkout: Path) -> Iterator[Row]:
    """Dat3M's tables of PTX tests, a command for each."""
    rows = []
    for table in dartagnan.TABLES:
        theirs, done = dartagnan.ask_dartagnan(checkout, table)
        with tempfile.TemporaryDirectory() as folder:
            asked = compat.ask_mcheck(dartagnan.write_table(checkout, table, Path(folder)), *VERDICTS, quiet=False)
        said = read_verdicts(asked.output)
        ours = {path: said.get(f"{checkout / path}", "no answer") for path in dartagnan.rows(checkout, table)}
        alike, different, left_out = compare_answers(theirs, ours)
        rows.append(
            Row(
                peer="Dartagnan",
                what=table.name,
                alike=alike,
                different=different,
                left_out=left_out,
                theirs=cost(done),
                ours=cost(asked),
                command=shlex.join([*dartagnan.command(checkout, table), "TEST…"]),
            )
        )
        yield rows[-1]
    yield together(rows, "together", DARTAGNAN)


def beside_herd7(program: str, file: Path, limit: float) -> Iterator[Row]:
    """The families of tests at the sizes of the file, up to the first one of each that herd7 does not finish."""
    module = families.load(file)
    rows: list[Row] = []
    unfinished: set[tuple[str, bool]] = set()
    for asked in families.rows(module):
        kind = (asked.family, asked.verdict_only)
        if not asked.tried or kind in unfinished:
            continue
        text = module.test(asked.family, asked.n)
        said = herd7.ask_herd7(program, text, limit, verdict_only=asked.verdict_only)
        ours = families.apart(families.measure, text, asked, None, limit)
        stopped = said.done.stopped
        unfinished |= {kind} if stopped else set()
        alike = said.verdict == ours.verdict and (asked.verdict_only or said.states == ours.found)
        what = f"{asked.family} {asked.n}, {'verdict' if asked.verdict_only else 'states'}"
        told = f"{what}: {said.verdict or 'no answer'}, mcheck {ours.verdict}"
        rows.append(
            Row(
                peer="herd7",
                what=what,
                alike=int(alike and not stopped),
                different=() if alike or stopped else (f"{told}; {len(said.states)} states, {ours.states}",),
                left_out={f"not done in {limit:g} s": 1} if stopped else {},
                theirs=cost(said.done),
                ours=Cost(ours.seconds, ours.wall),
                stopped=stopped,
                least=1.0 if said.done.processor >= NEGLIGIBLE else 1 / SMALL,
                command=shlex.join([*herd7.command(program, verdict_only=asked.verdict_only), "TEST"]),
            )
        )
        yield rows[-1]
    yield together(rows, "together")


def beside_spin(program: str, limit: float) -> Iterator[Row]:
    """The rings that have a Promela model, from the file to the answer, up to the first size that SPIN does not end."""
    rows = []
    for dimension in scale.dimensions(quick=False):
        if dimension.macros is None:
            continue
        ours = {size: scale.command(dimension.sketch(size), max(limit, ENOUGH)) for size in dimension.sizes}
        for name, words in scale.GRANULARITIES.items():
            alike, different, left_out, theirs, mine = 0, [], Counter[str](), Cost(), Cost()
            for at, size in enumerate(dimension.sizes):
                got = promela.search(
                    dimension.macros(size), (*words, *dimension.words), limit, MEMORY, spin=program
                )  # fmt: skip
                if got.why:
                    left_out[f"SPIN ran out of {got.why}"] += 1
                    left_out["larger than that"] += len(dimension.sizes) - at - 1
                    break
                proved = "(proved)" in ours[size].output
                alike += proved == (not got.errors)
                different += [] if proved == (not got.errors) else [f"{size}: {got.errors} errors, mcheck {proved=}"]
                theirs, mine = theirs + Cost(got.made + got.seconds, got.wall), mine + cost(ours[size])
            rows.append(
                Row(
                    peer="SPIN",
                    what=f"{dimension.title}, {name}",
                    alike=alike,
                    different=tuple(different),
                    left_out=+left_out,
                    theirs=theirs,
                    ours=mine,
                    command=f"{program} -a -DK=… ring.pml && cc -O2 {' '.join(promela.FLAGS)} pan.c -o pan && ./pan",
                )
            )
            yield rows[-1]
    yield together(rows, "together")


def beside_sentryward(python: str, limit: float, *, twins: bool) -> Iterator[Row]:
    """The launches and the modules whose right answer is known."""
    rows = []
    asked = [row for row in sentryward.read_rows() if twins or not row.bug]
    for corpus, bug, name in sentryward.GROUPS:
        chosen = [row for row in asked if row.corpus == corpus and row.bug == bug]
        if chosen:
            said = ((row, sentryward.ask_both(row, python, limit, MEMORY)) for row in chosen)
            rows.append(sum_up(name, said))
            yield rows[-1]
    yield together(rows, "together")


def sum_up(what: str, said: Iterator[tuple[sentryward.Row, dict[str, sentryward.Ran] | str]]) -> Row:
    """What SentryWard and mcheck say of kernels; of each that they differ about, which of the two is right."""
    alike, different, left_out, theirs, ours = 0, [], Counter[str](), Cost(), Cost()
    for row, ran in said:
        if isinstance(ran, str):
            left_out[f"SentryWard cannot be told: {ran}"] += 1
            continue
        other, mine = ran["SentryWard"], ran["mcheck"]
        if other.verdict == "unknown":
            left_out[f"SentryWard: {other.words}"] += 1
            continue
        if mine.verdict not in {"proved", "finding"}:
            left_out[f"mcheck: {mine.verdict}"] += 1
            continue
        theirs += Cost(other.seconds, other.wall)
        ours += Cost(mine.seconds, mine.wall)
        if other.verdict == mine.verdict:
            alike += 1
        else:
            right = " and ".join(tool for tool, one in ran.items() if sentryward.judge(row, one.verdict) != "wrong")
            different.append(
                f"{row.label}: {other.words}, mcheck {mine.words or mine.verdict}; right: {right or 'none'}"
            )
    return Row(
        peer="SentryWard",
        what=what,
        alike=alike,
        different=tuple(different),
        left_out=left_out,
        theirs=theirs,
        ours=ours,
        command="python -m sentryward module.ptx --input launch.json",
    )


HEAD = (
    f"{'peer':<11}{'rows':<36}{'alike':>6}{'differ':>7}{'left out':>9}{'its s':>10}{'mcheck s':>9}{'ratio':>8}"
    f"{'its wall':>10}{'mcheck wall':>12}"
)


def line(row: Row | Absent) -> str:
    """A line of the table."""
    if isinstance(row, Absent):
        return f"{row.peer:<11}not here: {row.why}"
    bound = ">" if row.stopped else ""
    ratio = f"{bound}{row.ratio:.2f}" if row.ratio is not None else "-"
    counts = f"{row.alike:>6}{len(row.different):>7}{sum(row.left_out.values()):>9}"
    seconds = f"{bound + f'{row.theirs.processor:.2f}':>10}{row.ours.processor:>9.2f}{ratio:>8}"
    mark = f"  MISSED: {row.least:g}" if row.missed else ""
    return f"{row.peer:<11}{row.what:<36}{counts}{seconds}{row.theirs.wall:>10.1f}{row.ours.wall:>12.1f}{mark}"


def notes(rows: Sequence[Row | Absent]) -> Iterator[str]:
    """What stands below the table: why rows were left out, which verdicts differ, and the commands."""
    ran = [row for row in rows if isinstance(row, Row) and row.what != "together"]
    for row in ran:
        for why, count in Counter(row.left_out).most_common():
            yield f"left out: {row.peer}, {row.what}: {count} ({why})"
    for row in ran:
        yield from (f"differ: {row.peer}, {row.what}: {name}" for name in row.different)
    yield from dict.fromkeys(f"{row.peer}: {row.command}" for row in ran)


def as_json(rows: Sequence[Row | Absent]) -> str:
    """The table for programs."""
    plain = (replace(row, left_out=dict(row.left_out)) if isinstance(row, Row) else row for row in rows)
    return json.dumps([asdict(row) for row in plain], indent=1)


def is_wrong(row: Row | Absent) -> bool:
    """Whether mcheck misses a mark, or differs from a peer that has the same model."""
    return isinstance(row, Row) and (row.missed or (bool(row.different) and row.peer != "SentryWard"))


def choose(options: argparse.Namespace) -> dict[str, Callable[[], Iterator[Row | Absent]]]:
    """How each peer is asked; one that is not there has a line that says so."""

    def unless(peer: str, why: str | None, ask: Callable[[], Iterator[Row]]) -> Callable[[], Iterator[Row | Absent]]:
        return ask if why is None else lambda: iter([Absent(peer, why)])

    checkout = options.dartagnan.resolve() if options.dartagnan else None
    lacks = promela.missing(options.spin)
    no_spin = f"no {lacks}: apt-get install spin gcc (--spin PATH names another)" if lacks else None
    no_families = None if options.families.is_file() else f"no {options.families} (--families FILE.py names another)"
    return {
        "dartagnan": unless("Dartagnan", dartagnan.missing(checkout), lambda: beside_dartagnan(checkout or ROOT)),
        "herd7": unless(
            "herd7",
            herd7.missing(options.herd7) or no_families,
            lambda: beside_herd7(options.herd7, options.families, options.limit),
        ),
        "spin": unless("SPIN", no_spin, lambda: beside_spin(options.spin, options.limit)),
        "sentryward": unless(
            "SentryWard",
            sentryward.missing(options.sentryward),
            lambda: beside_sentryward(options.sentryward, options.limit, twins=options.twins),
        ),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="NAME,…", help="dartagnan, herd7, spin, sentryward: these alone")
    parser.add_argument("--dartagnan", type=Path, metavar="CHECKOUT", help="a built checkout of Dat3M")
    parser.add_argument("--herd7", default="herd7", metavar="PATH")
    parser.add_argument("--spin", default="spin", metavar="PATH")
    parser.add_argument("--sentryward", default=sys.executable, metavar="PYTHON", help="the Python that has it")
    parser.add_argument("--families", type=Path, default=families.FAMILIES, metavar="FILE.py")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for an answer of herd7, SPIN, SentryWard")
    parser.add_argument("--twins", action="store_true", help="kernels with a bug for SentryWard, too")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows here as well")
    options = parser.parse_args(arguments)
    compileall.compile_dir(ROOT / "mcheck", quiet=2)  # as its installation does, whatever Python is told of bytecode
    peers = choose(options)
    only = {name.strip().lower() for name in options.only.split(",") if name.strip()}
    if unknown := only - set(peers):
        parser.error(f"no such peer: {', '.join(sorted(unknown))}")
    print(HEAD, flush=True)
    rows: list[Row | Absent] = []
    for name, ask in peers.items():
        if only and name not in only:
            continue
        for row in ask():
            rows.append(row)
            print(line(row), flush=True)
            if options.json is not None:
                options.json.write_text(as_json(rows) + "\n", encoding="utf-8")
    for note in notes(rows):
        print(note)
    return 1 if any(map(is_wrong, rows)) else 0


if __name__ == "__main__":
    sys.exit(main())
