"""Executions that continue from a checkpoint are what replaying them from the beginning gives."""

from __future__ import annotations

import contextlib
import dataclasses
from collections import deque
from collections.abc import Mapping
from random import Random
from typing import Any

import pytest

from mcheck.base.declared_state import attributes_of, declared_classes
from mcheck.base.errors import Unsupported
from mcheck.cat import load_model
from mcheck.engines.protocol import exploration
from mcheck.engines.protocol.execution import checkpoints, machine
from mcheck.engines.protocol.execution.checkpoints import Checkpoint, Checkpoints
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.execution.setup import Setup
from mcheck.engines.protocol.incremental.window import Window
from mcheck.engines.protocol.operations.scheduler import execute
from mcheck.engines.protocol.state.trace import Prefix
from mcheck.frontend.litmus import parse
from tests.fuzz.programs import FAMILIES, program

LOCK = """PTX lock
{ .global .u32 lock = 0, count = 0; }
block@cta 0..2, warp 0, lane 0 {
  .reg .b32 r, s;
  ld.relaxed.gpu.global.u32 s, [count];
  atom.acquire.gpu.global.exch.b32 r, [lock], 1;
  if (r == 0) {
    ld.relaxed.gpu.global.u32 s, [count];
    add.u32 s, s, 1;
    st.relaxed.gpu.global.u32 [count], s;
    st.release.gpu.global.u32 [lock], 0;
  }
}
"""
PHASES = """PTX phases
{ .shared .b64 bar; .global .u32 x = 0; .shared .b32 a; }
first@cta 0, warp 0, lane 0 {
  mbarrier.init.shared::cta.b64 [bar], 1;
  bar.sync 0;
  mbarrier.arrive.shared::cta.b64 _, [bar];
  await mbarrier.try_wait.parity.shared::cta.b64 [bar], 0;
  st.relaxed.gpu.global.u32 [x], 1;
}
second@cta 0, warp 1, lane 0 {
  .reg .pred p, q;
  bar.sync 0;
  mbarrier.test_wait.parity.shared::cta.b64 p, [bar], 0;
  if (p) { ld.relaxed.gpu.global.u32 r0, [x]; }
  mbarrier.test_wait.parity.shared::cta.b64 q, [bar], 0;
  ld.relaxed.gpu.global.u32 r1, [x];
}
third@cta 0, warp 2, lane 0 {
  bar.sync 0;
  atom.relaxed.gpu.global.add.u32 r0, [x], 2;
  ld.relaxed.gpu.global.u32 r1, [x];
}
"""
LATE_RACE = """PTX late-race
{ .global .u32 x = 0, y = 0, z = 0; }
a@cta 0, warp 0, lane 0 {
  .reg .b32 r;
  st.relaxed.gpu.global.u32 [z], 1;
  st.relaxed.gpu.global.u32 [z], 2;
  st.relaxed.gpu.global.u32 [x], 1;
  atom.relaxed.gpu.global.exch.b32 r, [x], 2;
  st.global.u32 [y], 1;
}
b@cta 0, warp 1, lane 0 {
  .reg .b32 r, s;
  ld.relaxed.gpu.global.u32 s, [z];
  atom.relaxed.gpu.global.exch.b32 r, [x], 3;
  if (r == 0) { st.global.u32 [y], s; }
  ld.relaxed.gpu.global.u32 s, [z];
}
"""
OF_WINDOW = frozenset(
    ("shown", "compiled", "relations", "newest", "last_columns", "filled", "memo", "latest", "recent", "equal",
     "equal_before", "keyed", "instructions", "ends", "class_count", "complete", "meets", "turned", "sorts")
)  # fmt: skip
"""What a window knows besides: it follows from the rest, or is of the newest event."""


def difference(a: object, b: object, where: str, known: dict[int, object]) -> str:
    """Where two states differ, or nothing; what is one object in the first is one in the second."""
    if a is b:
        return ""
    if id(a) in known:
        return "" if known[id(a)] is b else f"{where}: another object"
    if type(a) is not type(b):
        return f"{where}: {a!r} and {b!r}"
    if type(a) in declared_classes():
        known[id(a)] = b
        left_out = OF_WINDOW if isinstance(a, Window) else {"emitters", "latest_time"}
        names = [name for name in attributes_of(type(a)) if name not in left_out]
        return first(((getattr(a, n), getattr(b, n), f"{where}.{n}") for n in names), known)
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        both = a.keys() & b.keys()
        if both != a.keys() | b.keys() and ".window." not in where:  # of relations that are stored by both
            return f"{where}: {a.keys() ^ b.keys()}"
        return first(((a[k], b[k], f"{where}[{k}]") for k in both), known)
    if isinstance(a, list | tuple | deque) and isinstance(b, list | tuple | deque):
        if len(a) != len(b):
            return f"{where}: {len(a)} and {len(b)}"
        return first(((x, y, f"{where}[{k}]") for k, (x, y) in enumerate(zip(a, b, strict=True))), known)
    if not dataclasses.is_dataclass(a) and (slots := getattr(type(a), "__slots__", ())) and a != b:
        return first(((getattr(a, n), getattr(b, n), f"{where}.{n}") for n in slots), known)
    if a != b and hasattr(a, "__dict__") and not dataclasses.is_dataclass(a):
        return difference(vars(a), vars(b), where, known)
    return "" if a == b else f"{where}: {a!r} and {b!r}"


def first(pairs: Any, known: dict[int, object]) -> str:
    return next((found for a, b, where in pairs if (found := difference(a, b, where, known))), "")


def restored(monkeypatch: pytest.MonkeyPatch, text: str, *, thorough: bool = False) -> int:
    """How many executions of a program continued from a checkpoint: each is compared with one that did not."""
    count = 0

    def both(setup: Setup, prefix: Prefix = (), *, checkpoints: Checkpoints) -> Machine:
        nonlocal count
        execute(setup, prefix)  # what the set-up and the histories know from now on makes no events
        m = execute(setup, prefix, checkpoints=checkpoints)
        alone = execute(setup, prefix)
        assert difference(m, alone, "m", {}) == ""
        return m

    def counted(self: Checkpoints, prefix: Prefix) -> Checkpoint | None:
        nonlocal count
        found = restore(self, prefix)
        count += found is not None
        return found

    restore = Checkpoints.restore
    monkeypatch.setattr(Checkpoints, "restore", counted)
    monkeypatch.setattr(exploration, "execute", both)
    monkeypatch.setattr(checkpoints, "NEAREST", 1)
    monkeypatch.setattr(checkpoints, "MOST", 5)
    # Which events can be told apart is seen from unions that happen to have been gathered; no relation depends on it.
    monkeypatch.setattr(machine, "MERGE_THRESHOLD", 10**6)
    search = exploration.Search(
        parse(text, "checkpoints.litmus"), load_model("ptx-9.0"), "ptx", 2, 40, thorough=thorough, suggests_fixes=False
    )
    with contextlib.suppress(Unsupported):
        search.run()
    return count


@pytest.mark.daily
@pytest.mark.parametrize("text", [LOCK, PHASES], ids=["lock", "phases"])
def test_restored_executions_are_replayed_ones(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert restored(monkeypatch, text, thorough=True) > 3


def test_an_error_leaves_fewer_ways_from_then_on(monkeypatch: pytest.MonkeyPatch) -> None:
    assert restored(monkeypatch, LATE_RACE) > 3


@pytest.mark.daily
@pytest.mark.parametrize("family", FAMILIES)
def test_restored_executions_of_random_programs_are_replayed_ones(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(f"checkpoints {family}")
    for _ in range(3):
        restored(monkeypatch, program(random, (family,)))
