"""Mutated inputs through the whole command line, each under a limit of 2 s and 1 GiB: nothing may crash or overrun.

    .venv/bin/python -m benchmarks.abuse --count 30000 --state abuse.json --save broken

Tests and sketches (their statements, their meaning, their bytes), PTX modules and their launches, cat models, tables of
expectations, alphabets, arrays of data and caches are changed and given to a command with a form of report; some tests
and modules with a cache, or in the place of a pipe. An input fails if there is a traceback, an
exit status that is none of the documented ones (70 above all), more than a second beyond the limit, or an error without
a word. Seconds are those of the processor, so that a busy machine changes no answer; what has not ended after five
minutes never does.

The commands are forked from a process that has imported what they need, and pay for their input alone.
Every input has a number and a generator of its own: with ``--state`` a run goes on where the last one ended, and
``--only N`` repeats one.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import resource
import signal
import sqlite3
import sys
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path

from mcheck.cat.model_files import models_directory
from mcheck.checking.cache.database import FILE, Store
from mcheck.checking.cache.entries import pack_entry, unpack_entry
from mcheck.checking.cache.keys import version
from mcheck.tools.generate.alphabet import folder as alphabets
from tests.checking.check import fuzz as sketches
from tests.frontend.litmus import fuzz as containers
from tests.simt import fuzz as modules
from tests.simt import mistakes
from tests.tools.cli import fuzz as statements

ROOT = Path(__file__).parents[1]
LIMIT = 2.0
BEYOND = 1.0
"""Seconds beyond the limit that a command may take, of the processor."""
START = 1.0
"""Seconds of the processor that the command itself takes besides: its start, and its report."""
STUCK = 300.0
"""Seconds after which a command that does not end is taken to hang."""
LIMITS = ("--timeout", str(LIMIT), "--memory", "1G")
STATUSES = frozenset({0, 1, 2, 3})
FORMATS = ("text", "json", "junit", "sarif", "github")
LARGEST = 6000
"""Characters of a module that is changed: larger ones cost more and show nothing else."""
MP = """PTX MP
{ x=0; f=0; }
 P0@cta 0,gpu 0         | P1@cta 1,gpu 0        ;
 st.weak x, 1           | ld.acquire.gpu r0, f  ;
 st.release.gpu f, 1    | ld.weak r1, x         ;
~exists (P1:r0 == 1 /\\ P1:r1 == 0)
"""
SAMPLES = (
    ("run", "a.litmus"),
    *(("check", "a.litmus", "--format", form) for form in FORMATS),
    ("outcomes", "a.litmus", "--graph", "1", "-o", "x.svg"),
    ("exec", "a.litmus"),
    ("compare", "ptx-9.0", "sc", "a.litmus"),
    ("doc", "a.litmus", "-o", "site"),
)
"""Commands that import what the inputs need."""
CAT_WORDS = (
    *("po", "rf", "co", "fr", "rmw", "loc", "ext", "int", "W", "R", "F", "0", "_", "range", "domain", "X"),
    *("|", "&", ";", "\\", "^-1", "+", "*", "?", "[", "]", "(", ")", "=", "->", '"', "(*", "*)", "~"),
    *("let", "rec", "and", "acyclic", "irreflexive", "empty", "flag", "as", "include", "with", "from", "try", "if"),
    *("fun", "procedure", "call", "show", "in", "then", "else", "undefined"),
)
VALUES = (
    *("1000000000", "[1000000000]", "-5", '"x"', "[]", "{}", '"{dst:>1500000000}"', '"{dst.__class__}"', '"../../x"'),
    *(
        '"a\\nb"',
        "true",
        "1e400",
        "inf",
        '"{"',
        '["RR", "WW"]',
        '"shared"',
        '"peer"',
        '"register"',
        '["po"]',
        "1979-05-27",
    ),
    *('["data", "addr"]', '["wait"]', '["issue"]', '["bar", "mbar"]', '"gpu"', '["fence.sc"]', "[" * 900 + "]" * 900),
)
"""What an alphabet may say of anything."""
STATEMENTS = (
    *("UPDATE answers SET answer = 'text'", "UPDATE answers SET day = 'today'", "UPDATE answers SET seal = ''"),
    *(
        "UPDATE answers SET answer = zeroblob(100000000)",
        "UPDATE answers SET key = 7",
        "UPDATE answers SET version = 'x'",
    ),
    *(
        "DROP TABLE answers",
        "CREATE TABLE more(text)",
        "CREATE VIEW more AS SELECT * FROM answers",
        "PRAGMA user_version = 9",
    ),
    *("CREATE TRIGGER t AFTER INSERT ON answers BEGIN DELETE FROM answers; END", "DELETE FROM answers"),
)
ARRAY = b"\x93NUMPY\x01\x00\x46\x00{'descr': '<u4', 'fortran_order': False, 'shape': (1,), }            \n\0\0\0\1"
CACHED = frozenset({"statements", "meaning", "bytes", "models", "modules"})
"""Kinds of inputs that are tried with a cache as well."""
ROWS = (
    "a.litmus,2",
    ",1",
    "a.litmus",
    '"a,1',
    "#",
    "b.litmus,1",
    "a.litmus,0,1",
    "\0",
    "../a.litmus,1",
    "a.litmus,1" * 99,
)


@dataclass(slots=True)
class Tally:
    """What came of the inputs up to ``next``; ``failures`` are (number, what is wrong) pairs."""

    seed: int
    next: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[int, str]] = field(default_factory=list)
    slowest: float = 0.0

    def told(self) -> str:
        """The counts in a line."""
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(self.kinds.items()))
        statuses = ", ".join(f"{count} of {status}" for status, count in sorted(self.statuses.items()))
        ends = f"slowest {self.slowest:.1f} s; {len(self.failures)} failed"
        return f"{self.next} inputs ({kinds}); status {statuses}; {ends}"


@dataclass(frozen=True, slots=True)
class Input:
    """A command line and the files that it names."""

    kind: str
    arguments: tuple[str, ...]
    files: dict[str, bytes | None]
    """What is in them; nothing: a pipe."""


# --- inputs -----------------------------------------------------------------------------------------------------


class Maker:
    """Makes inputs by their number."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._texts = sketches.texts()
        self._lines = [text.split("\n") for text in self._texts]
        self._seeds = containers.seeds()
        self._modules = modules.modules(LARGEST)
        self._alphabets = [path.read_text(encoding="utf-8") for path in sorted(alphabets().glob("*.toml"))]
        self._answered = b""
        self._models = [path.read_text(encoding="utf-8") for path in sorted(models_directory().rglob("*.cat"))]

    def __call__(self, number: int) -> Input:
        """The input of this number, always the same one."""
        rng = random.Random(f"{self._seed}:{number}")
        tests = (self._test,) * 6
        others = (self._table, self._alphabet, self._array, self._cache, self._pipe)
        given = rng.choice((*tests, self._model, self._model, self._module, *others))(rng)
        if given.kind in CACHED and rng.random() < 0.1:
            kept = rng.choice(("--cache", "--resume")) if given.arguments[0] in ("run", "check") else "--cache"
            given = replace(given, arguments=(*given.arguments, kept, "kept"))
        return given

    def _test(self, rng: random.Random) -> Input:
        kind = rng.choice(("statements", "meaning", "bytes"))
        text = rng.choice(self._texts)
        match kind:
            case "statements":
                data = statements.mutate(rng, text, self._texts).encode("utf-8", "replace")
            case "meaning":
                data = sketches.mutate(rng, text, self._lines).encode("utf-8", "replace")
            case _:
                data = containers.mutated(rng, self._seeds)
        return Input(kind, _command(rng), {"a.litmus": data})

    def _model(self, rng: random.Random) -> Input:
        text = rng.choice(self._models)
        for _ in range(rng.randint(1, 4)):
            words = text.split(" ")
            at = rng.randrange(len(words))
            match rng.randrange(5):
                case 0:
                    del words[at]
                case 1:
                    words.insert(at, rng.choice(CAT_WORDS))
                case 2:
                    words[at] = rng.choice(CAT_WORDS)
                case 3:
                    words[at] = rng.choice(words)
                case _:
                    words[at] = "(" * (deep := rng.choice((2, 40, 400, 4000))) + words[at] + ")" * deep
            text = " ".join(words) or " "
        test = rng.choice((MP, rng.choice(self._texts)))
        files = {"m.cat": text.encode("utf-8", "replace"), "a.litmus": test.encode()}
        command = rng.choice((("run", "a.litmus"), ("check", "a.litmus"), ("outcomes", "a.litmus")))
        return Input("models", (*command, "--model", "m.cat", *LIMITS), files)

    def _module(self, rng: random.Random) -> Input:
        text, launch = rng.choice(self._modules)
        files = {
            "k.ptx": mistakes.mutate(rng, text).encode("utf-8", "replace"),
            "l.json": mistakes.damaged(rng, launch).encode("utf-8", "replace"),
        }
        command = ("check", "k.ptx", "--launch", "l.json", "--format", rng.choice(FORMATS))
        return Input("modules", (*command, *LIMITS), files)

    def _alphabet(self, rng: random.Random) -> Input:
        lines = rng.choice(self._alphabets).split("\n")
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(lines))
            key, equals, _ = lines[at].partition("=")
            if equals and rng.random() < 0.8:
                lines[at] = f"{key}= {rng.choice(VALUES)}"
            elif rng.random() < 0.5:
                lines.insert(at, rng.choice(lines))
            else:
                lines[at] = "[" * rng.choice((1, 3, 4000)) + lines[at]
        sizes = ("--size", rng.choice(("2", "3", "32", "1000000000")), "--limit", "2", "--every", "5")
        out = rng.choice(((), ("-o", "out")))
        return Input(
            "alphabets",
            ("generate", "--edges", "a.toml", *sizes, *out, *LIMITS[:2]),
            {"a.toml": "\n".join(lines).encode("utf-8", "replace")},
        )

    def _array(self, rng: random.Random) -> Input:
        data = bytearray(ARRAY)
        for _ in range(rng.randint(0, 6)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        cut = bytes(data[: rng.choice((len(data), len(data), rng.randrange(len(data) + 1)))])
        name = rng.choice(("x.npy", "x.npy", "x.bin"))
        return Input(
            "arrays", ("exec", "a.litmus", "--load", f"x={name}", *LIMITS), {"a.litmus": MP.encode(), name: cut}
        )

    def _cache(self, rng: random.Random) -> Input:
        """A cache with the answer about the test, changed in its file, in its rows or in what they unpack to."""
        data = self._kept()
        match rng.randrange(3):
            case 0:
                changed = bytearray(data)
                for _ in range(rng.choice((1, 4, 400))):
                    changed[rng.randrange(len(changed))] = rng.randrange(256)
                data = bytes(changed[: rng.choice((len(changed), len(changed), rng.randrange(len(changed)))) or 1])
            case 1:
                data = _altered(data, rng.choice(STATEMENTS))
            case _:
                data = _rewritten(data, rng)
        command = rng.choice(
            (("run", "a.litmus"), ("cache", "kept"), ("cache", "kept", "--check"), ("cache", "kept", "--clear"))
        )
        arguments = command if command[0] == "cache" else (*command, "--cache", "kept", *LIMITS)
        return Input("caches", arguments, {f"kept/{FILE}": data, "a.litmus": MP.encode()})

    def _kept(self) -> bytes:
        """The file of a cache that holds the answer about the test."""
        if not self._answered:
            with tempfile.TemporaryDirectory() as folder:
                given = Input("", ("run", "a.litmus", "--cache", "kept"), {"a.litmus": MP.encode()})
                attempt(given, Path(folder))
                self._answered = (Path(folder) / "kept" / FILE).read_bytes()
        return self._answered

    def _pipe(self, rng: random.Random) -> Input:
        """A pipe in the place of a file, which nobody writes to."""
        name = rng.choice(("a.litmus", "k.ptx", "k.json", "m.cat", "parts.cat"))
        files = {
            "a.litmus": MP.replace("{ x", "model m.cat\n{ x").encode(),
            "k.ptx": b".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k() { ret; }\n",
            "k.json": b"{}",
            "m.cat": b'"m"\ninclude "parts.cat"\nacyclic po | com as Order\n',
            "parts.cat": b"let com = rf | co\n",
        }
        path = "k.ptx" if name.startswith("k.") else "a.litmus"
        command = ("check", path) if path == "k.ptx" else (rng.choice(("run", "check", "outcomes")), path)
        kept = (
            rng.choice(((), ("--cache", "kept")))
            if command[0] == "outcomes"
            else rng.choice(((), ("--cache", "kept"), ("--resume", "kept")))
        )
        return Input("pipes", (*command, *kept, *LIMITS), {**files, name: None})

    def _table(self, rng: random.Random) -> Input:
        rows = [rng.choice((*ROWS, "a.litmus,1", "a.litmus,0")) for _ in range(rng.randint(1, 6))]
        data = "\n".join(rows).encode()
        if rng.random() < 0.3:
            at = rng.randrange(len(data) + 1)
            data = data[:at] + rng.randbytes(3) + data[at:]
        paths = rng.choice(((), ("a.litmus",)))
        return Input("tables", ("run", *paths, "--expect", "t.csv", *LIMITS), {"t.csv": data, "a.litmus": MP.encode()})


def _altered(data: bytes, statement: str) -> bytes:
    """The file of a cache after a statement of SQL."""
    with tempfile.NamedTemporaryFile(suffix=".sqlite") as file:
        Path(file.name).write_bytes(data)
        with closing(sqlite3.connect(file.name)) as connection, connection:
            connection.execute("PRAGMA journal_mode = DELETE")
            connection.execute(statement)
        return Path(file.name).read_bytes()


def _rewritten(data: bytes, rng: random.Random) -> bytes:
    """The file of a cache whose answer somebody changed and sealed again."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / FILE).write_bytes(data)
        with closing(Store(folder, version())) as store:
            ((key, row),) = store.own_answers()
            made, answer = unpack_entry(row)
            text = zlib.decompress(answer).decode()
            at = rng.randrange(len(text))
            match rng.randrange(4):
                case 0:
                    text = (
                        text[:at]
                        + rng.choice(("[", "]", "null", "9" * 5000, '"', ",", "{}", "1e999", "-1"))
                        + text[at + 1 :]
                    )
                case 1:
                    text = "[" * 100_000 + text
                case 2:
                    text = '"' + "x" * (200 << 20) + '"'
                case _:
                    text = text.replace('"pass"', rng.choice(('"proved"', "7", "[]", "null"))).replace('"fail"', "1")
            store.remove(key)
            store.put(key, pack_entry(made, zlib.compress(text.encode(), 9)))
        return (Path(folder) / FILE).read_bytes()


def _command(rng: random.Random) -> tuple[str, ...]:
    path = "a.litmus"
    model = ("--model", rng.choice(("ptx-9.3", "ptx-7.5", "sc"))) if rng.random() < 0.3 else ()
    commands: tuple[tuple[str, ...], ...] = (
        ("run", path, "--format", rng.choice(FORMATS)),
        ("check", path, "--format", rng.choice(FORMATS)),
        ("outcomes", path, "--format", rng.choice(("text", "json"))),
        ("outcomes", path, "--graph", "1", "-o", rng.choice(("x.svg", "x.dot", "x.graphml"))),
        ("outcomes", path, "--graph", "1", "--forbidden", "-o", "x.svg"),
    )
    weights = (4, 4, 2, 1, 1)
    if rng.random() < 0.1:
        others = (("exec", path), ("compare", "ptx-9.0", "sc", path), ("doc", path, "-o", "site"))
        return (*rng.choice(others), *LIMITS)
    return (*rng.choices(commands, weights)[0], *model, *LIMITS)


# --- running one ------------------------------------------------------------------------------------------------


def attempt(given: Input, folder: Path, after: Callable[[], object] = int) -> tuple[int, float, str]:
    """Exit status, seconds of the processor and what was said, of a command in a process forked from this one.

    ``after`` is called in that process when the command has ended.
    """
    for name, data in given.files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        if data is None:
            os.mkfifo(path)
        else:
            path.write_bytes(data)
    said = folder / "said"
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        _become(given.arguments, folder, said, after)
    until = time.monotonic() + STUCK
    while True:
        done, status, usage = os.wait4(pid, os.WNOHANG)
        if done:
            break
        if time.monotonic() > until:
            os.killpg(pid, signal.SIGKILL)
            _, status, usage = os.wait4(pid, 0)
            break
        time.sleep(0.005)
    return os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime, said.read_text("utf-8", "replace")


def _become(arguments: tuple[str, ...], folder: Path, said: Path, after: Callable[[], object]) -> None:
    """The command itself, in the child; does not return."""
    status = 99
    try:
        os.setsid()
        os.chdir(folder)
        out = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for descriptor in (1, 2):
            os.dup2(out, descriptor)
        sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
        from mcheck.tools.cli.main import main

        status = main(arguments)
        sys.stdout.flush()
        sys.stderr.flush()
        after()
    finally:
        os._exit(status)


def complaint(given: Input, status: int, seconds: float, said: str) -> str | None:
    """What is wrong with an outcome."""
    models = 2 if given.arguments[0] in ("compare", "check") else 1
    if given.arguments[0] == "doc":
        models = 8  # a page asks every model, each within the limit
    if "Traceback" in said or "internal error" in said:
        return f"status {status}: {said[-800:]}"
    if status not in STATUSES:
        return f"status {status}: {said[-800:]}"
    if status and not said.strip():
        return f"status {status} without a word"
    if seconds > models * LIMIT + BEYOND + START:
        return f"{seconds:.1f} s"
    return None


def run(tally: Tally, count: int, save: Path | None = None, each: Callable[[Tally], None] = lambda _: None) -> None:
    """Inputs from ``tally.next`` to ``count``; ``each`` hears of every one."""
    warm()
    make = Maker(tally.seed)
    while tally.next < count:
        number = tally.next
        given = make(number)
        with tempfile.TemporaryDirectory() as folder:
            status, seconds, said = attempt(given, Path(folder))
        wrong = complaint(given, status, seconds, said)
        if wrong is not None:
            tally.failures.append((number, f"mcheck {' '.join(given.arguments)}: {wrong}"))
            if save is not None:
                save.mkdir(parents=True, exist_ok=True)
                for name, data in given.files.items():
                    (save / f"{number}-{name.replace('/', '-')}").write_bytes(data or b"")
        tally.kinds[given.kind] += 1
        tally.statuses[str(status)] += 1
        if given.arguments[0] != "doc":
            tally.slowest = max(tally.slowest, seconds)
        tally.next = number + 1
        each(tally)


def warm() -> None:
    """Imports what the commands import, so that a fork has it already and pays for its input alone."""
    import mcheck.tools.cli.main  # noqa: F401
    from mcheck.checking.policy.engines import preload
    from mcheck.checking.run.single import load_model

    preload("protocol")
    preload()
    load_model("ptx-9.0")
    samples = [Input("", (*command, *LIMITS), {"a.litmus": MP.encode()}) for command in SAMPLES]
    for name in sorted({name for given in samples for name in _imported(given)}):
        import_module(name)
    gc.collect()
    gc.freeze()  # what a collection touches would be copied in every child


def _imported(given: Input) -> list[str]:
    """The modules that a command imports beyond those that are here."""
    here = set(sys.modules)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        told = folder / "told"
        attempt(given, folder, lambda: told.write_text("\n".join(set(sys.modules) - here), encoding="utf-8"))
        return told.read_text(encoding="utf-8").split()


# --- the state --------------------------------------------------------------------------------------------------


def load(path: Path, seed: int) -> Tally:
    """The state of an earlier run of this seed, or a new one."""
    if not path.exists():
        return Tally(seed)
    kept = json.loads(path.read_text(encoding="utf-8"))
    if kept["seed"] != seed:
        raise SystemExit(f"{path} is of seed {kept['seed']}")
    failures = [(number, text) for number, text in kept["failures"]]
    return Tally(seed, kept["next"], Counter(kept["kinds"]), Counter(kept["statuses"]), failures, kept["slowest"])


def store(tally: Tally, path: Path) -> None:
    """Writes the state in one step."""
    fields = ("seed", "next", "kinds", "statuses", "failures", "slowest")
    draft = path.with_name(f".{path.name}")
    draft.write_text(json.dumps({name: getattr(tally, name) for name in fields}), encoding="utf-8")
    draft.replace(path)


def main() -> int:
    """Prints the counts and the failures; exit status 1 if there are any."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=30000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--state", type=Path, help="the file with the counts, which a later run goes on from")
    parser.add_argument("--save", type=Path, help="a folder for the inputs that fail")
    parser.add_argument("--only", type=int, metavar="N", help="one input")
    parser.add_argument("--nice", type=int, default=19)
    options = parser.parse_args()
    os.nice(options.nice)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if options.only is not None:
        tally = Tally(options.seed, options.only)
        print(" ".join(Maker(options.seed)(options.only).arguments))
        run(tally, options.only + 1, options.save)
    else:
        tally = load(options.state, options.seed) if options.state else Tally(options.seed)

        def each(now: Tally) -> None:
            if options.state and now.next % 20 == 0:
                store(now, options.state)
            if now.next % 500 == 0:
                print(now.told(), flush=True)

        run(tally, options.count, options.save, each)
        if options.state:
            store(tally, options.state)
    for number, text in tally.failures:
        print(f"--- {number}: {text}")
    print(tally.told())
    return 1 if tally.failures else 0


if __name__ == "__main__":
    sys.exit(main())
