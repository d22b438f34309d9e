"""Atomics whose acquire orders nothing, because nothing releases what they read, commute."""

from __future__ import annotations

import pytest

from mcheck.base.budget import processor_time
from mcheck.cat import load_model
from mcheck.engines.protocol.analysis.shared_words import find_released_words
from mcheck.engines.protocol.findings_answer import check
from mcheck.engines.protocol.passes import passes_without
from mcheck.frontend.litmus import parse

MODEL = load_model("ptx-9.0")
ADD = "atom.relaxed.gpu.global.add.u32 r9,"


def last_block(before: str = "", lanes: int = 3) -> str:
    """Counts, and behind a ticket those who draw the last one read them all; ``before`` is done before each count."""
    return f"""PTX last-block
    {{ .global .align 128 .u32 bins[4]; .global .u32 count = 0; .shared .u32 ticket; }}
    block@cta 0..2, warp 0, lane 0..{lanes} {{
      {before}
      {ADD} [bins + 4*%tid.x], 1;
      bar.sync 0;
      if (%tid.x == 0) {{
        fence.sc.gpu;
        atom.relaxed.gpu.global.add.u32 r8, [count], 1;
        fence.sc.gpu;
        st.shared.u32 [ticket], r8;
      }}
      bar.sync 0;
      ld.shared.u32 r7, [ticket];
      if (r7 == 1) {{ ld.global.u32 r1, [bins + 4*({lanes} - 1 - %tid.x)]; }}
    }}
    """


def words(code: str) -> int | None:
    """How many words of a program may be released."""
    found = find_released_words(parse(f"PTX t {{ .global .u32 x = 0, y = 0; .shared .align 8 .b64 b; }} {code}", "t"))
    return None if found is None else len(found)


@pytest.mark.parametrize(
    ("code", "many"),
    [
        (f"a@cta 0 {{ {ADD} [x], 1; fence.acq_rel.gpu; }}", 0),
        (f"a@cta 0 {{ fence.acq_rel.gpu; {ADD} [x], 1; }}", 1),
        ("a@cta 0 { red.release.gpu.global.add.u32 [x], 1; st.relaxed.gpu.global.u32 [y], 1; }", 1),
        ("a@cta 0 { st.release.gpu.global.u32 [x], 1; } b@cta 1 { fence.sc.gpu; st.global.u32 [y], 1; }", 2),
        (f"a@cta 0 {{ again:\n {ADD} [x], 1;\n fence.sc.gpu;\n setp.eq.u32 %p1, r9, 0;\n @%p1 bra again;\n }}", 1),
        ("a@cta 0 { mbarrier.init.shared::cta.b64 [b], 1; mbarrier.arrive.shared::cta.b64 _, [b]; }", None),
    ],
)
def test_released_are_words_of_a_release_or_behind_a_fence(code: str, many: int | None) -> None:
    assert words(code) == many


@pytest.mark.daily(least=0)
@pytest.mark.parametrize("before", ["", "fence.acq_rel.gpu;"])
def test_the_answer_is_that_of_all_orders(before: str) -> None:
    program = parse(last_block(before, 2), "last.litmus")
    with processor_time():
        one, every = (check(program, MODEL, timeout=30, passes=passes_without(p)) for p in ((), ("commuting-atomics",)))
    assert one.verdict == every.verdict == "proved"
    assert one.executions < every.executions


@pytest.mark.daily(least=0)
def test_counts_that_nothing_releases_are_not_run_in_every_order() -> None:
    """Without the fence before them the thread that acquires later adds in any order, with it in all of them."""
    with processor_time():
        few, many = (
            check(parse(last_block(b), "last.litmus"), MODEL, timeout=60, passes=passes_without(("weakened-accesses",)))
            for b in ("", "fence.acq_rel.gpu;")
        )
    assert (few.verdict, many.verdict) == ("proved", "proved")
    assert few.executions < many.executions
