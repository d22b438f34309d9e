"""Mutates valid files and checks that nothing but ``McheckError`` ever comes out of the containers.

    python -m tests.frontend.litmus.fuzz --count 20000 --seed 1

The valid files are those of ``litmus/`` and, where it is there, of ``../shared/compat``, besides a few here.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from mcheck.base.errors import InternalError, McheckError
from mcheck.frontend.litmus import parse
from mcheck.frontend.litmus.source import decode_source
from mcheck.report.errors import render

ROOT = Path(__file__).parents[3]
FOLDERS = (ROOT / "litmus", ROOT / "../shared/compat/litmus", Path(__file__).parent / "valid")
PIECES = re.compile(r"\s+|\w+|.", re.DOTALL)
SPICE = (
    "{", "}", "[", "]", "(", ")", ";", ",", "|", "@", "%", "~", "!", "..", "/\\", "\\/", "(*", "*)", "//", "/*", '"',
    "<<", ">>", "==", "=", ":", "::", ".", "_", "-", "0", "1", "-1", "32", "4294967296", "0x", "0xg", "1.5", "9" * 30,
    "P0", "P9", "r0",
    "%r1", "%laneid", "x", "for", "if", "else", "in", "await", "const", ".reg", ".global", ".shared",
    ".align", ".u32", ".tensormap", "exists", "forall", "expect", "locations", "filter", "cta", "warp", "lane",
    "cluster",
    "aliases", "generic", "ld", "st.weak", "bra", "mbarrier", "cp.async.bulk", "\t", "\n", "\r", "\x00", "é", "\u2028",
    "\x1b[31m", "𝔘",
)  # fmt: skip


@dataclass(slots=True)
class Outcome:
    """What came of the mutations."""

    accepted: int = 0
    rejected: dict[str, int] = field(default_factory=dict)
    crashes: list[tuple[str, str]] = field(default_factory=list)
    slowest: float = 0.0


def seeds() -> list[str]:
    """The texts of all valid files at hand."""
    files = [path for folder in FOLDERS if folder.is_dir() for path in sorted(folder.rglob("*.litmus"))]
    return [path.read_text(encoding="utf-8") for path in files]


def _pieces(rng: random.Random, text: str) -> list[str]:
    return PIECES.findall(text) or [""]


def _drop(rng: random.Random, text: str, _: list[str]) -> str:
    pieces = _pieces(rng, text)
    at = rng.randrange(len(pieces))
    del pieces[at : at + rng.choice((1, 1, 1, 2, 5))]
    return "".join(pieces)


def _insert(rng: random.Random, text: str, _: list[str]) -> str:
    pieces = _pieces(rng, text)
    pieces.insert(rng.randrange(len(pieces) + 1), rng.choice(SPICE))
    return "".join(pieces)


def _replace(rng: random.Random, text: str, _: list[str]) -> str:
    pieces = _pieces(rng, text)
    pieces[rng.randrange(len(pieces))] = rng.choice(SPICE)
    return "".join(pieces)


def _swap(rng: random.Random, text: str, _: list[str]) -> str:
    pieces = _pieces(rng, text)
    a, b = rng.randrange(len(pieces)), rng.randrange(len(pieces))
    pieces[a], pieces[b] = pieces[b], pieces[a]
    return "".join(pieces)


def _repeat(rng: random.Random, text: str, _: list[str]) -> str:
    pieces = _pieces(rng, text)
    at = rng.randrange(len(pieces))
    pieces[at : at + 1] = [pieces[at]] * rng.choice((2, 3, 50, 400))
    return "".join(pieces)


def _lines(rng: random.Random, text: str, others: list[str]) -> str:
    lines = text.split("\n")
    other = rng.choice(others).split("\n")
    lines[rng.randrange(len(lines))] = rng.choice(other)
    return "\n".join(lines)


def _cut(rng: random.Random, text: str, _: list[str]) -> str:
    return text[: rng.randrange(len(text) + 1)]


def _splice(rng: random.Random, text: str, others: list[str]) -> str:
    other = rng.choice(others)
    return text[: rng.randrange(len(text) + 1)] + other[rng.randrange(len(other) + 1) :]


def _number(rng: random.Random, text: str, _: list[str]) -> str:
    numbers = list(re.finditer(r"\d+", text))
    if not numbers:
        return text
    match = rng.choice(numbers)
    value = rng.choice(("0", "1", "2", "7", "31", "32", "33", "255", "65536", "4294967296", "18446744073709551616"))
    return text[: match.start()] + value + text[match.end() :]


MUTATIONS: tuple[Callable[[random.Random, str, list[str]], str], ...] = (
    _drop, _insert, _replace, _swap, _repeat, _lines, _cut, _splice, _number,
)  # fmt: skip


def mutated(rng: random.Random, texts: list[str]) -> bytes:
    """One of the texts with a few mistakes."""
    text = rng.choice(texts)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        text = rng.choice(MUTATIONS)(rng, text, texts)
    data = text.encode("utf-8", "surrogatepass")
    if rng.random() < 0.02:
        at = rng.randrange(len(data) + 1)
        data = data[:at] + bytes(rng.randrange(256) for _ in range(3)) + data[at:]
    return data


def mutants(count: int, seed: int) -> Iterator[bytes]:
    """``count`` mutated files."""
    rng = random.Random(seed)
    texts = seeds()
    for _ in range(count):
        yield mutated(rng, texts)


def run(count: int, seed: int) -> Outcome:
    """Parses ``count`` mutants; an error is rendered as well, for that must not fail either."""
    outcome = Outcome()
    for data in mutants(count, seed):
        start = time.perf_counter()
        try:
            parse(decode_source(data, "fuzz.litmus"), "fuzz.litmus")
            outcome.accepted += 1
        except InternalError:
            outcome.crashes.append((traceback.format_exc(), data.decode("utf-8", "replace")))
        except McheckError as error:
            render(error, sources={"fuzz.litmus": data.decode("utf-8", "replace")}, color=True)
            code = error.code or "none"
            outcome.rejected[code] = outcome.rejected.get(code, 0) + 1
        except Exception:  # noqa: BLE001 - whatever it is, it is what this looks for
            outcome.crashes.append((traceback.format_exc(), data.decode("utf-8", "replace")))
        outcome.slowest = max(outcome.slowest, time.perf_counter() - start)
    return outcome


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    start = time.perf_counter()
    outcome = run(options.count, options.seed)
    out = sys.stdout
    for code, number in sorted(outcome.rejected.items()):
        out.write(f"{code:20} {number}\n")
    for trace, text in outcome.crashes[:3]:
        out.write(f"--- crash\n{trace}\n--- input\n{text}\n")
    rejected = sum(outcome.rejected.values())
    out.write(
        f"{options.count} mutations in {time.perf_counter() - start:.1f} s: {outcome.accepted} accepted, "
        f"{rejected} rejected with {len(outcome.rejected)} codes, {len(outcome.crashes)} crashes, "
        f"slowest {outcome.slowest:.2f} s\n"
    )
    return 1 if outcome.crashes else 0


if __name__ == "__main__":
    raise SystemExit(main())
