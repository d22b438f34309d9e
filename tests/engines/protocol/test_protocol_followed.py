"""Words by which threads go, with any number of rounds, and lanes that read one together."""

from __future__ import annotations

from random import Random
from time import process_time

import pytest

from mcheck.base.budget import Limit, processor_time
from mcheck.cat import load_model
from mcheck.cat.algebra.compiled_models import tape_of
from mcheck.checking.policy.ask import ask
from mcheck.checking.policy.question import Completeness, Question
from mcheck.engines.protocol.exploration import Search
from mcheck.engines.protocol.final_states import answer
from mcheck.engines.protocol.findings_answer import check
from mcheck.engines.protocol.incremental.overwritten import overwriting_relations
from mcheck.engines.protocol.passes import passes_without
from mcheck.frontend.litmus import parse
from mcheck.ir.loop_unrolling import Aperiodic
from mcheck.ir.program import Program
from mcheck.proofs.parametric_proof import Proof, prove
from tests.engines.protocol.followed import DECIDED, FLAG, FLAGS, FOLLOWED, SPUN, TOLD_OF_WORK
from tests.engines.protocol.sketches import changed
from tests.fuzz.themes import themed

MODEL = load_model("ptx-9.0")


def proof(text: str) -> Proof:
    return prove(parse(text, "any.litmus", every=True), MODEL, "ptx", 2, Limit(60))


def sized(text: str, number: int) -> Program:
    return parse(text.replace("N = any", f"N = {number}"), "one.litmus")


@pytest.mark.daily
@pytest.mark.parametrize("name", FOLLOWED)
def test_any_number_is_proved(name: str) -> None:
    found = proof(FOLLOWED[name])
    for number in (found.first, found.first + 1, found.first + 3 * found.period):
        given = check(sized(FOLLOWED[name], number), MODEL, timeout=60)
        assert given.verdict == "proved", given.reason


WRONG = {
    "a-flag-that-is-read-relaxed": (
        changed(FLAG, ("ld.acquire.gpu.global.u32 r1, [flag]", "ld.relaxed.gpu.global.u32 r1, [flag]")), "RACE001",
    ),
    "a-flag-that-stays": (changed(FLAG, ("[flag], (k+1)%2", "[flag], ((k+1)%2)^(k==9)")), "DEAD004"),
    "a-flag-for-the-round-before": (changed(FLAG, ("[back] == k%2", "[back] == (k%2)*(k!=21)")), "RACE001"),
    "a-scope-of-a-cta": (changed(FLAGS, ("st.release.gpu", "st.release.cta")), "RACE010"),
    "a-stage-too-early": (changed(FLAGS, ("[empty[k%S]] == (k/S)%2", "[empty[k%S]] == (k/S)%2*(k<20)")), "RACE001"),
    "nobody-hands-the-tile-back": (
        changed(TOLD_OF_WORK, ("if (%laneid == 0) { mbarrier", "if (%laneid == 32) { mbarrier")), "DEAD003",
    ),
    "work-that-is-read-before-it-is-there": (
        changed(TOLD_OF_WORK, ("  await mbarrier.try_wait.parity.shared::cta.b64 [fb], ph;\n", "")), "RACE001",
    ),
    "no-word-that-ends-it": (changed(TOLD_OF_WORK, ("[tile[N%S]], 0;", "[tile[N%S]], 1;")), "DEAD003"),
    "no-second-barrier": (
        changed(DECIDED, ("{ st.shared.u32 [x + 4*%laneid], k; }\n    bar.sync 0, 64;",
                          "{ st.shared.u32 [x + 4*%laneid], k; }")), "DEAD002",
    ),
    "a-spin-for-the-other-value": (changed(SPUN, ("setp.ne.u32 again, seen, want;\n    @again bra FULL",
                                                  "setp.eq.u32 again, seen, want;\n    @again bra FULL")), None),
}  # fmt: skip


@pytest.mark.daily(least=0)
@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_found(name: str) -> None:
    text, code = WRONG[name]
    found = ask(parse(text, "any.litmus", every=True), MODEL, Question(about=Completeness.FINDINGS, timeout=60))
    assert found.verdict == "finding", found.reason
    assert code is None or code in {f.code for f in found.findings}


OPEN = {
    "values-that-grow-and-are-waited-for": changed(
        FLAG, ("[back] == k%2", "[back] == k"), ("[back], (k+1)%2", "[back], k+1")
    ),
    "atomics": changed(FLAG, ("st.release.gpu.global.u32 [back], (k+1)%2", "red.release.gpu.global.xor.b32 [back], 1")),
    "values-that-grow-and-decide": changed(DECIDED, ("[go], k%3", "[go], k")),
    "a-late-round": changed(FLAG, ("    ld.global.u32 r0, [x];", "    if (k != 300) { ld.global.u32 r0, [x]; }")),
}  # fmt: skip


@pytest.mark.parametrize("name", OPEN)
def test_what_does_not_repeat_is_not_proved(name: str) -> None:
    with pytest.raises(Aperiodic):
        proof(OPEN[name])


def test_what_is_stored_grows_where_nobody_goes_by_it() -> None:
    assert proof(changed(DECIDED, ("[go], k%3", "[go], k%2"))).period == 2


def test_lanes_that_read_one_write_stay_together() -> None:
    search = Search(sized(TOLD_OF_WORK, 5), MODEL, "ptx", 2)
    search.run()
    assert search.extra_words
    assert search.setup is not None
    assert len(search.setup.partition) == 5  # the scheduler, and of each warp the lane that arrives and the others
    assert search.executions == 1


LANES = """PTX lanes
{{ .global .u32 x = 0, y = 0; }}
writer@cta 1, lane 0 {{
  st.relaxed.gpu.u32 [x], 1;
}}
readers@cta 0, warp 0 {{
  .reg .u32 r, q;
  ld{} r, [x];
  if (r == 1) {{ st.global.u32 [y], 1; }}
}}
"""


@pytest.mark.daily(days=4, least=0)
@pytest.mark.parametrize("load", [".u32", ".relaxed.gpu.u32"])
def test_lanes_that_may_read_several_writes_part(load: str) -> None:
    found = check(parse(LANES.format(load), "lanes.litmus"), MODEL, timeout=60)
    assert any(f.code.startswith("RACE") and "accesses on y" in f.message for f in found.findings), found


def test_shipped_models_say_what_has_been_overwritten() -> None:
    for name in ("ptx-6.0", "ptx-7.5", "ptx-9.0", "ptx-9.3"):
        assert overwriting_relations(tape_of(load_model(name)))


@pytest.mark.daily(one_of="random programs")
@pytest.mark.parametrize("first", range(0, 120, 8))
def test_what_is_left_out_at_once_would_be_refused(first: int, all_tests: bool) -> None:
    """Executions, findings and states are those of trying every write and every place."""
    texts = [themed(Random(f"followed:{k}")).text() for k in range(first, first + 8)]
    tests = [parse(text, "random.litmus") for text in texts]

    timeout = 5 if all_tests else 1

    def answers(*without: str) -> list[object]:
        passes, found = passes_without(without), list[object]()
        for test in tests:
            started = process_time()
            with processor_time():
                given = check(test, MODEL, timeout=timeout, passes=passes)
                states = answer(test, MODEL, timeout=timeout, passes=passes)
            in_time = process_time() - started < timeout  # what is found by then need not be all
            complete = in_time and given.verdict != "unknown" and states.verdict != "unknown"
            found.append((given.verdict, {f.code for f in given.findings}, given.executions, states.outcomes)
                         if complete else None)  # fmt: skip
        return found

    quick, slow = answers(), answers("overwritten-writes", "common-loads", "unsplit-atomics")
    pairs = [(a, b) for a, b in zip(quick, slow, strict=True) if a is not None and b is not None]
    assert len(pairs) > 3
    assert all(a == b for a, b in pairs)
