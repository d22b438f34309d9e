"""The few statements that the oracle knows, read from the lines of a draft, without the project's parser."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass


class NotForThis(Exception):
    """A statement, or a use of one, that the oracle does not know."""


@dataclass(frozen=True, slots=True)
class Step:
    """``name`` of the operation, its operands, and the predicate under which it runs: (register, wanted value)."""

    name: str
    bar: str = ""
    args: tuple[int | str, ...] = ()
    guard: tuple[str, int] | None = None


_OBJECT = r"\[(b\d*)\]"
_WAIT = re.compile(
    rf"(await )?mbarrier\.(?:test|try)_wait(\.parity)?(?:\.acquire\.(?:cta|cluster))?\.shared::cta\.b64 "
    rf"(?:(%p\d+), )?{_OBJECT}, (\d+|%rd\d+);"
)
_ARRIVE = re.compile(
    rf"mbarrier\.arrive(_drop)?(\.expect_tx|\.noComplete)?(?:\.release\.(?:cta|cluster))?\.shared::cta\.b64 "
    rf"(_|%rd\d+), {_OBJECT}(?:, (\d+))?;"
)
_SIGNAL = re.compile(rf"mbarrier\.(expect|complete)_tx\.relaxed\.(?:cta|cluster)\.shared::cta\.b64 {_OBJECT}, (\d+);")
_LIFE = re.compile(rf"mbarrier\.(init|inval)\.shared::cta\.b64 {_OBJECT}(?:, (\d+))?;")
_PENDING = re.compile(r"mbarrier\.pending_count\.b64 (r\d+), (%rd\d+);")
_SELECT = re.compile(r"selp\.u32 (r\d+), 1, 0, (%p\d+);")
_LOAD = re.compile(r"ld\.shared\.u32 (r\d+), \[x\];")
_STORE = re.compile(r"st\.shared\.u32 \[x\], (\d+);")
_GUARD = re.compile(r"@(!?)(%p\d+) (.*)")
_IF = re.compile(r"if \((r\d+) == (\d+)\) \{")


def steps(lines: Iterable[str]) -> tuple[Step, ...]:
    """The steps of a thread; a block becomes a jump over it."""
    found: list[Step] = []
    opened: list[int] = []
    waiting = list(lines)
    while waiting:
        line = waiting.pop(0)
        if spin := _spin(line, waiting):
            found.append(spin)
            del waiting[:2]
        elif block := _IF.fullmatch(line):
            opened.append(len(found))
            found.append(Step("unless", args=(block[1], int(block[2]))))
        elif line == "}":
            start = opened.pop()
            found[start] = Step("unless", args=(*found[start].args, len(found)))
        else:
            found.append(_step(line))
    return tuple(found)


def _spin(line: str, after: list[str]) -> Step | None:
    """A label, a poll and a branch back to the label while it is false: a wait that blocks."""
    if not re.fullmatch(r"L\d+:", line):
        return None
    poll = _WAIT.fullmatch(after[0]) if after else None
    if poll is None or poll[1] or len(after) < 2 or after[1] != f"@!{poll[3]} bra {line[:-1]};":
        raise NotForThis(line)
    return Step("await", poll[4], (poll[3], *_awaited(poll)))


def _awaited(m: re.Match[str]) -> tuple[int | str, ...]:
    if bool(m[2]) == m[5].startswith("%"):
        raise NotForThis(m[0])
    return (m[5],) if m[5].startswith("%") else (int(m[5]),)


def _step(line: str) -> Step:
    if guarded := _GUARD.fullmatch(line):
        inner = _step(guarded[3])
        return Step(inner.name, inner.bar, inner.args, (guarded[2], 0 if guarded[1] else 1))
    if line in ("bar.sync 0;", "exit;"):
        return Step("exit" if line == "exit;" else "bar.sync")
    if m := _WAIT.fullmatch(line):
        if bool(m[1]) == bool(m[3]):
            raise NotForThis(line)
        suspends = "try_wait.parity" in line
        return Step("await" if m[1] else "try" if suspends else "poll", m[4], (m[3] or "", *_awaited(m)))
    if m := _ARRIVE.fullmatch(line):
        tx = m[2] == ".expect_tx"
        amount = int(m[5]) if m[5] else 1
        state = "" if m[3] == "_" else m[3]
        kind = "no complete" if m[2] == ".noComplete" else ""
        return Step("drop" if m[1] else "arrive", m[4], (state, 1 if tx else amount, amount if tx else -1, kind))
    if m := _SIGNAL.fullmatch(line):
        return Step(m[1], m[2], (int(m[3]),))
    if m := _LIFE.fullmatch(line):
        return Step(m[1], m[2], (int(m[3]),) if m[3] else ())
    if m := _PENDING.fullmatch(line):
        return Step("pending", args=(m[1], m[2]))
    if m := _SELECT.fullmatch(line):
        return Step("select", args=(m[1], m[2]))
    if m := _LOAD.fullmatch(line):
        return Step("load", args=(m[1],))
    if m := _STORE.fullmatch(line):
        return Step("store", args=(int(m[1]),))
    raise NotForThis(line)
