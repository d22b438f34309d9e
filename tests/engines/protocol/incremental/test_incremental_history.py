"""What is remembered over the replayed beginnings of executions is what the model answers when it is asked again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

from mcheck.cat import load_model
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.findings_answer import check
from mcheck.engines.protocol.operations import atomics, coherence_positions
from mcheck.engines.protocol.operations.remembered_trials import answer_trial
from mcheck.events.event import Event
from mcheck.frontend.litmus import parse

LOCK = """PTX lock
{ .global .u32 lock = 0, count = 0; }
block@cta 0..2, warp 0, lane 0 {
  .reg .b32 r, s;
  atom.acquire.gpu.global.exch.b32 r, [lock], 1;
  if (r == 0) {
    ld.relaxed.gpu.global.u32 s, [count];
    add.u32 s, s, 1;
    st.relaxed.gpu.global.u32 [count], s;
    st.release.gpu.global.u32 [lock], 0;
  }
}
"""
TICKETS = """PTX tickets
{ .global .u32 next = 0, x = 0; }
block@cta 0..2, warp 0, lane 0 {
  .reg .b32 r, s;
  atom.relaxed.gpu.global.add.u32 r, [next], 1;
  st.relaxed.gpu.global.u32 [x], r;
  ld.relaxed.gpu.global.u32 s, [x];
  atom.acq_rel.gpu.global.cas.b32 s, [x], 1, 7;
}
"""


@pytest.mark.parametrize("text", [LOCK, TICKETS], ids=["lock", "tickets"])
def test_what_is_remembered_is_what_the_model_says(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    known = 0

    def asks_again(
        m: Machine, threads: Sequence[int], events: Iterable[Event], edges: dict[str, int], back: Any,
        question: tuple[object, ...], ask: Callable[[], object],
    ) -> object:  # fmt: skip
        nonlocal known
        asked = 0

        def counted() -> object:
            nonlocal asked
            asked += 1
            return ask()

        found = answer_trial(m, threads, events, edges, back, question, counted)
        if not asked:
            known += 1
            assert ask() == found
        return found

    for module in (atomics, coherence_positions):
        monkeypatch.setattr(module, "answer_trial", asks_again)
    found = check(parse(text, "history.litmus"), load_model("ptx-9.0"))
    assert found.executions > 1
    assert known > 10
