"""Spin loops as compilers and people write them mean ``await``: one execution each."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcheck.cat import load_model
from mcheck.engines.protocol.findings_answer import answer, check
from mcheck.frontend.litmus import load, parse
from mcheck.ir import liveness
from mcheck.ir.liveness import is_any_live, live_registers_at
from mcheck.ir.ops import Op

TEXT = """PTX spin
{{
  .global .align 16 .b8 g[64];
  .shared .align 16 .b8 s[64];
  .shared .b64 b;
}}
w@cta 0, warp 0 {{
  .reg .pred p, q;
  .reg .b32 ok, turns, at;
  mov.u32 turns, 0;
  if (%laneid == 0) {{
    mbarrier.init.shared::cta.b64 [b], 1;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [b], 64;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [s], [g], 64, [b];
  }}
  bar.warp.sync 0xffffffff;
  {loop}
  ld.shared.u16 r0, [s + 2*%laneid];
}}
"""
WAIT = "mbarrier.try_wait.parity.shared::cta.b64 p, [b], 0;"
LOOPS = {
    "plain": f"AGAIN: {WAIT} @!p bra AGAIN;",
    "two-branches": f"{{ AGAIN: {WAIT} @p bra DONE; bra AGAIN; DONE: }}",
    "through-a-register": f"AGAIN: {WAIT} selp.b32 ok, 1, 0, p; setp.eq.u32 q, ok, 0; @q bra AGAIN;",
    "with-a-pause": f"AGAIN: {WAIT} @p bra DONE; nanosleep.u32 32; bra AGAIN; DONE:",
    "pause-under-a-predicate": f"AGAIN: {WAIT} @!p nanosleep.u32 32; @!p bra AGAIN;",
    "negated": f"AGAIN: {WAIT} not.pred q, p; @q bra AGAIN;",
    "address-fetched-anew": f"AGAIN: mov.u32 at, b; add.u32 at, at, 0; {WAIT.replace('[b]', '[at]')} @!p bra AGAIN;",
    "compared": f"AGAIN: {WAIT} selp.b32 ok, 1, 0, p; if (ok == 1) {{ bra DONE; }} bra AGAIN; DONE:",
}


@pytest.mark.daily
@pytest.mark.parametrize("name", LOOPS)
def test_a_spin_loop_is_a_wait(name: str) -> None:
    found = check(parse(TEXT.format(loop=LOOPS[name]), "spin.litmus"), load_model("ptx-9.0"), timeout=30)
    assert (found.verdict, found.findings, found.executions) == ("proved", (), 1)


def test_a_loop_that_gives_up_is_none() -> None:
    """The number of rounds decides whether it leaves without the answer."""
    loop = f"AGAIN: {WAIT} @p bra DONE; add.u32 turns, turns, 1; setp.lt.u32 q, turns, 2; @q bra AGAIN; DONE:"
    text = TEXT.format(loop=loop).replace("warp 0 {", "warp 0, lane 0 {").replace("bar.warp.sync 0xffffffff;", "")
    found = check(parse(text, "spin.litmus"), load_model("ptx-9.0"), timeout=30)
    assert {f.code for f in found.findings} == {"RACE003", "UB504"}


def test_a_loop_whose_address_moves_is_none() -> None:
    """Each round asks the next mbarrier: the answer of the first is not asked for again."""
    loop = f"mov.u32 at, b; AGAIN: {WAIT.replace('[b]', '[at]')} add.u32 at, at, 8; @!p bra AGAIN;"
    text = TEXT.format(loop=loop).replace(".shared .b64 b;", ".shared .b64 b, c;")
    found = check(parse(text, "spin.litmus"), load_model("ptx-9.0"), timeout=30)
    assert {f.code for f in found.findings} == {"UB103"}, "it walks out of all objects"


def test_a_poll_without_a_loop_is_none() -> None:
    found = check(parse(TEXT.format(loop=WAIT), "spin.litmus"), load_model("ptx-9.0"), timeout=30)
    assert {f.code for f in found.findings} == {"RACE003", "UB504"}


def test_a_poll_whose_answer_nobody_uses_misses_first() -> None:
    """A wait that has lost its loop: what it does not wait for is found in the first execution."""
    rounds = f"for k in 0..12 {{ {WAIT} mbarrier.arrive.shared::cta.b64 _, [c]; }}".replace("[b], 0", "[c], k%2")
    text = TEXT.format(loop=f"{WAIT} ld.shared.u16 r1, [s + 2*%laneid]; {rounds}")
    text = text.replace(".shared .b64 b;", ".shared .b64 b, c;").replace(
        "    mbarrier.arrive.expect_tx", "    mbarrier.init.shared::cta.b64 [c], 32;\n    mbarrier.arrive.expect_tx"
    )
    found = answer(parse(text, "spin.litmus"), load_model("ptx-9.0"), timeout=30, brief=True)
    assert "RACE003" in {f.code for f in found.findings}
    assert found.executions == 1


ROUNDS = """PTX rounds
{{ .shared .b64 b; .global .u32 x; }}
w@cta 0 {{
  .reg .pred p;
  mbarrier.init.shared::cta.b64 [b], 1;
  for k in 0..{rounds} {{
    mbarrier.arrive.shared::cta.b64 _, [b];
    AGAIN: mbarrier.try_wait.parity.shared::cta.b64 p, [b], k%2;
    @!p bra AGAIN;
  }}
}}
"""


def test_spin_loops_in_rounds_cost_by_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    effects, read = liveness.defined_and_used, [0]

    def counted(op: Op) -> tuple[set[str], set[str]]:
        read[0] += 1
        return effects(op)

    monkeypatch.setattr(liveness, "defined_and_used", counted)
    counts = []
    for rounds in (20, 40):
        read[0] = 0
        given = check(parse(ROUNDS.format(rounds=rounds), "rounds.litmus"), load_model("ptx-9.0"))
        assert given.verdict == "proved"
        counts.append(read[0])
    assert 1.8 * counts[0] <= counts[1] <= 2.2 * counts[0]


SUITES = Path(__file__).parents[3] / "litmus"


@pytest.mark.parametrize("suite", ["liveness", "mbarrier", "atomics"])
def test_what_is_live_at_one_point_is_what_is_live_among_all(suite: str) -> None:
    seen = set()
    for path in sorted((SUITES / suite).glob("*.litmus")):
        for thread in load(str(path)).threads:
            for at_end in (set[str](), set(thread.types)):
                live = live_registers_at(thread, set(range(len(thread.code) + 1)), at_end)
                for point, names in live.items():
                    for name in thread.types:
                        found = is_any_live(thread, point, {name}, at_end)
                        assert found is (name in names), (path.name, point, name)
                        seen.add(found)
    assert seen == {True, False}
