"""Mistakes in PTX modules and launches, as people, tools and transport make them."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from typing import Any

NUMBER = re.compile(r"(?<![\w.%$])\d+(?![\w.])")
WORD = re.compile(r"[%$A-Za-z_][\w$]*")
PART = re.compile(r"\.[A-Za-z][\w:]*")
TYPE = re.compile(r"\.(?:[usbf](?:8|16|32|64)|b128|pred|bf16|f16x2)\b")
TYPES = (".u8", ".u16", ".s32", ".u32", ".b32", ".f32", ".u64", ".b64", ".f64", ".b128", ".pred", ".bf16", ".f16x2")
ADDRESS = re.compile(r"\[[^\]]*\]")
LABEL = re.compile(r"^\s*[$\w]+:")
NUMBERS = (
    "0", "1", "-1", "2", "7", "31", "32", "33", "64", "255", "1024", "65536", "100000000", "4294967295", "4294967296",
    "18446744073709551615", "18446744073709551616", "0x7fffffffffffffff", "0f7FC00000",
    "-2147483649", "-9223372036854775808", "-9223372036854775809", "9" * 40, "0x" + "f" * 40, "1e10", "0.5", "3", "12",
    "(1<<63)", "1/0", "%r1", "WARP_SZ",
)  # fmt: skip
INSERTED = (
    "bar.sync 0;", "bar.sync 1, 64;", "trap;", "exit;", "ret;", "brkpt;", "@%p1 exit;", "{", "}",
    "nonsense.u32 %r1, %r2;", "fence.proxy.async;", "mov.u32 %r1, %clock;", "mov.b32 %r2, -1;",
    "st.shared.u32 [%r1], %r2;", "ld.global.u32 %r1, [%rd1];", "bra $L__done;", "L: bra L;", "activemask.b32 %r1;",
    "elect.sync %r1|%p1, -1;", "vote.sync.any.pred %p1, %p1, -1;", "shfl.sync.idx.b32 %r1, %r2, 0, 31, -1;",
    "atom.global.add.u32 %r1, [%rd1], 1;", "call other;", "@%p1 bar.warp.sync -1;",
    "tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [picture, {%f1, %f2}];", "cp.async.bulk.wait_group 0;",
    "nanosleep.u32 20;", "barrier.cluster.arrive;", "barrier.cluster.wait;", "mbarrier.init.shared.b64 [%r1], 1;",
    "setmaxnreg.inc.sync.aligned.u32 64;", "mapa.u32 %r1, %r2, 1;", "mul.wide.u32 %rd1, %r1, %r2;",
    "div.u32 %r1, %r2, 0;", ".reg .b32 %r<4>;", ".loc 1 1 1", '"', "<<<<<<< HEAD", "//", "/*", "*/",
    ".reg .b32 %r<4294967296>;", ".shared .align 3 .b8 odd[5];", ".shared .b8 less[-1];", ".shared .b8 huge[1 << 40];",
    ".local .align 16 .b8 depot[16];", ".param .u64 more;", ".branchtargets L;", '.pragma "nounroll";',
    ".target sm_999", ".version 99.9", ".address_size 32", ".maxntid 0, 0, 0", ".reqnctapercluster 9, 9, 9",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, -1, 0, 1, 31, 1 << 20, 1 << 31, 1 << 63, 1 << 70, 0.5, 1e300, "any", "1", "a", [], [0], [1, 2, 3, 4], {},
    True, {"buffer": None}, {"buffer": 0}, {"buffer": 1 << 40}, {"buffer": -1}, {"hex": "00"}, {"hex": "xyz"},
    {"tensormap": {}}, {"tensormap": {"rank": 9}}, {"at": {"0": {"buffer": 4}}}, {"at": {"x": 1}}, [2048, 1, 1],
    [1 << 31, 1, 1], [0, 0, 0], [-1, 1, 1], [1.5, 1, 1], ["8", 1, 1], [None, 1, 1], [[1], 1, 1], [True, 1, 1],
    "", "0x10", "128", "1e3", "8 1 1", "a" * 10_000, "\ud800", "\0", 2.0, -0.0, float("nan"), float("inf"), 10**400,
    False,
    {"buffer": 4096.0}, {"buffer": "4096"}, {"buffer": True}, {"buffer": 64, "hex": "00"}, {"buffer": 64, "at": []},
    {"hex": ""}, {"hex": "0"}, {"value": 1}, {"": {}}, {"grid": {"grid": 1}},
)  # fmt: skip

Mutation = Callable[[random.Random, list[str]], None]


# --- mutations of the text ------------------------------------------------------------------------------------


def _at(rng: random.Random, lines: list[str]) -> int:
    """A line, mostly of a body."""
    good = [k for k, line in enumerate(lines) if line.rstrip().endswith(";")]
    return rng.choice(good) if good and rng.random() < 0.9 else rng.randrange(len(lines))


def _drop(rng: random.Random, lines: list[str]) -> None:
    del lines[_at(rng, lines)]


def _repeat(rng: random.Random, lines: list[str]) -> None:
    at = _at(rng, lines)
    lines.insert(at, lines[at])


def _exchange(rng: random.Random, lines: list[str]) -> None:
    a, b = _at(rng, lines), _at(rng, lines)
    lines[a], lines[b] = lines[b], lines[a]


def _insert(rng: random.Random, lines: list[str]) -> None:
    lines.insert(_at(rng, lines), rng.choice(INSERTED))


def _truncate(rng: random.Random, lines: list[str]) -> None:
    del lines[rng.randrange(len(lines)) :]
    if lines:
        lines[-1] = lines[-1][: rng.randrange(len(lines[-1]) + 1)]


def _replaced(rng: random.Random, lines: list[str], what: re.Pattern[str], choose: Callable[[str], str]) -> None:
    at = _at(rng, lines)
    places = list(what.finditer(lines[at]))
    if places:
        place = rng.choice(places)
        lines[at] = lines[at][: place.start()] + choose(place[0]) + lines[at][place.end() :]


def _number(rng: random.Random, lines: list[str]) -> None:
    _replaced(rng, lines, NUMBER, lambda _: rng.choice(NUMBERS))


def _word(rng: random.Random, lines: list[str]) -> None:
    words = WORD.findall(lines[_at(rng, lines)]) or ["_"]
    _replaced(rng, lines, WORD, lambda _: rng.choice(words))


def _register(rng: random.Random, lines: list[str]) -> None:
    _replaced(rng, lines, re.compile(r"%[a-z]+\d+"), lambda name: re.sub(r"\d+", str(rng.randrange(12)), name))


def _part(rng: random.Random, lines: list[str]) -> None:
    parts = PART.findall(lines[_at(rng, lines)]) or [""]
    _replaced(rng, lines, PART, lambda _: rng.choice([*parts, "", ".nonsense"]))


def _characters(rng: random.Random, lines: list[str]) -> None:
    at = rng.randrange(len(lines))
    cut = rng.randrange(len(lines[at]) + 1)
    lines[at] = (
        lines[at][:cut] + rng.choice(list('{}()[];,.%@!|"\\/*+-=<>\0é\t$_0a')) + lines[at][cut + rng.randrange(2) :]
    )


def _negate(rng: random.Random, lines: list[str]) -> None:
    at = _at(rng, lines)
    line = lines[at].strip()
    lines[at] = line.replace("@!", "@", 1) if line.startswith("@!") else line.replace("@", "@!", 1)


def _operands(rng: random.Random, lines: list[str]) -> None:
    """Operands of an instruction in another order, one too few or one too many."""
    at = _at(rng, lines)
    head, blank, tail = lines[at].strip().rstrip(";").partition(" ")
    parts = [part.strip() for part in tail.split(",")]
    a, b = rng.randrange(len(parts)), rng.randrange(len(parts))
    match rng.randrange(4):
        case 0:
            del parts[a]
        case 1:
            parts.insert(a, parts[b])
        case _:
            parts[a], parts[b] = parts[b], parts[a]
    lines[at] = f"{head}{blank}{', '.join(parts)};"


def _type(rng: random.Random, lines: list[str]) -> None:
    """Another type, of an instruction or of registers and variables."""
    where = [k for k, line in enumerate(lines) if TYPE.search(line)]
    if where:
        at = rng.choice(where)
        place = rng.choice(list(TYPE.finditer(lines[at])))
        lines[at] = lines[at][: place.start()] + rng.choice(TYPES) + lines[at][place.end() :]


def _undeclared(rng: random.Random, lines: list[str]) -> None:
    """Registers, variables or parameters that nothing declares any more, or fewer of them."""
    where = [k for k, line in enumerate(lines) if re.match(r"\s*\.(?:reg|shared|global|param|extern|const)\b", line)]
    if where:
        at = rng.choice(where)
        if rng.random() < 0.5:
            del lines[at]
        else:
            lines[at] = re.sub(r"([<\[])\d+([>\]])", lambda m: f"{m[1]}{rng.choice(NUMBERS)}{m[2]}", lines[at])


def _label(rng: random.Random, lines: list[str]) -> None:
    """A label that is not there, is there twice, or stands elsewhere."""
    where = [k for k, line in enumerate(lines) if LABEL.match(line)]
    if where:
        label = lines[at] if (at := rng.choice(where)) and rng.random() < 0.3 else lines.pop(at)
        if rng.random() < 0.6:
            lines.insert(_at(rng, lines or [""]), label)


def _block(rng: random.Random, lines: list[str]) -> None:
    """Some lines that are not there, or there several times."""
    first = _at(rng, lines)
    some = lines[first : first + rng.choice((2, 4, 8, 16, 64))]
    if rng.random() < 0.4:
        del lines[first : first + len(some)]
    else:
        at = rng.choice((first, _at(rng, lines)))
        lines[at:at] = some * rng.choice((1, 1, 2, 8))


def _address(rng: random.Random, lines: list[str]) -> None:
    """An address that is not aligned, is far off, or is none."""
    where = [k for k, line in enumerate(lines) if ADDRESS.search(line)]
    if where:
        at = rng.choice(where)
        place = rng.choice(list(ADDRESS.finditer(lines[at])))
        inner = place[0][1:-1].split("+")[0]
        offset = rng.choice(
            ("+1", "+2", "+3", "+-1", "+-4", "-8", "+8", "+64", "+65536", "+4294967295", "+99999999999")
        )
        new = rng.choice((inner + offset, inner + offset, inner + offset, "", "0", "-1", "%r1+%r2", f"{inner}, 1, 2"))
        lines[at] = f"{lines[at][: place.start()]}[{new}]{lines[at][place.end() :]}"


def _transport(rng: random.Random, lines: list[str]) -> None:
    """What files go through: line ends, marks, a part that is lost, a file that is there twice."""
    match rng.randrange(7):
        case 0:
            lines[:] = [f"{line}\r" for line in lines]
        case 1:
            lines[0] = f"\ufeff{lines[0]}"
        case 2:
            first = rng.randrange(len(lines))
            del lines[first : rng.randrange(first, len(lines)) + 1]
        case 3:
            lines += list(lines)
        case 4:
            lines[:] = [" ".join(lines)]
        case 5:
            lines[:] = [line.upper() if rng.random() < 0.5 else line.lower() for line in lines]
        case _:
            lines[:] = [line.replace(" ", "\t") for line in lines]


MUTATIONS: tuple[Mutation, ...] = (
    _drop, _drop, _drop, _repeat, _exchange, _exchange, _insert, _insert, _insert, _truncate, _number, _number, _number,
    _word, _register, _register, _register, _part, _part, _characters, _negate, _operands, _operands, _type, _type,
    _undeclared, _label, _label, _block, _block, _address, _address, _transport,
)  # fmt: skip


def mutate(rng: random.Random, text: str) -> str:
    """``text`` with up to three mistakes."""
    lines = text.split("\n")
    for _ in range(rng.choice((0, 1, 1, 1, 2, 3))):
        rng.choice(MUTATIONS)(rng, lines)
        lines = lines or [""]
    return "\n".join(lines)


# --- mutations of the launch ----------------------------------------------------------------------------------


KEYS = ("grid", "block", "params", "0", "1", "entry", "cluster", "shared", "gird", "Grid", "", "é", "__class__", "-1")
LEVELS = 5_000
WHOLE = (
    "", "null", "NaN", "-Infinity", "3", '"launch"', "[]", "[[]]", "{}", "[" * LEVELS, '{"params":' * LEVELS,
    '{"grid": ' + "[" * LEVELS + "]" * LEVELS + "}", '{"grid": ' + "9" * LEVELS + "}", '{"grid": 1, "grid": 2}',
    '{"entry": "\\ud800"}', "{'grid': 1}", '{"grid": 1,}', '// launch\n{"grid": 1}', "grid: 1",
)  # fmt: skip
"""Files that are no launch, or another one."""


def damaged(rng: random.Random, launch: dict[str, Any]) -> str:
    """The launch as JSON, often with a mistake."""
    if rng.random() < 0.02:
        return rng.choice(WHOLE)
    made = json.loads(json.dumps(launch))
    for _ in range(rng.choice((0, 0, 0, 1, 1, 2))):
        where: Any = made
        while True:
            key = rng.choice([*where, rng.choice(KEYS)])
            inner = where.get(key)
            if isinstance(inner, dict) and inner and rng.random() < 0.7:
                where = inner
                continue
            break
        if isinstance(inner, list) and inner and rng.random() < 0.4:
            inner[rng.randrange(len(inner))] = rng.choice(VALUES)
        elif rng.random() < 0.3:
            where.pop(key, None)
        else:
            where[key] = json.loads(json.dumps(rng.choice(VALUES)))
    text = json.dumps(made, indent=1)
    if rng.random() < 0.03:
        cut = rng.randrange(len(text))
        text = text[:cut] + rng.choice(("", "}", "{", ",", '"', "NaN", "\0", "\ufeff", "//")) + text[cut + 1 :]
    if rng.random() < 0.01:
        text = text[: rng.randrange(len(text))]
    return text
