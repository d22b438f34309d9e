"""What is observed of tests that name nothing, and how results of other terms are kept apart."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from hardware.emit import CannotEmit
from hardware.litmus.compare import compare
from hardware.litmus.intended import intended
from hardware.litmus.kernel import Kernel, kernel
from hardware.litmus.observe import MOST, observed, observed_as
from hardware.litmus.plan import entry
from hardware.litmus.whole import whole
from mcheck.answers.final_states import terms_of
from mcheck.cat import load_model
from mcheck.frontend.litmus import load as load_test
from mcheck.frontend.litmus import parse
from mcheck.ir.program import Program
from mcheck.report.hardware_results import Observation, load

LITMUS = Path(__file__).parents[2] / "litmus"

RING = """PTX R
{ .global .align 16 .b8 g[32]; .global .align 16 .b8 out[16]; .shared .align 16 .b8 s[16]; .shared .b64 b; }
P@cta 0 {
  mbarrier.init.shared::cta.b64 [b], 1;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [b], 16;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [g + 16], 16, [b];
  await mbarrier.try_wait.parity.shared::cta.b64 [b], 0;
  ld.shared.u32 r0, [s];
  EXTRA
  cp.async.bulk.global.shared::cta.bulk_group [out], [s], 16;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
}
"""


def ring(extra: str = "") -> Program:
    return observed(parse(RING.replace("EXTRA", extra), "r.litmus"))


def labels(program: Program) -> list[str]:
    return [t.label for t in terms_of(program.condition)]  # type: ignore[union-attr]


def contents(program: Program, name: str) -> bytes:
    found = program.memory.instance_of(name)
    assert found is not None
    return found.object.init or b""


def test_the_words_that_are_written_and_the_registers_that_are_loaded() -> None:
    assert labels(ring()) == ["out[bytes 0..8]", "out[bytes 8..16]", "P:r0", "s@0[bytes 0..8]", "s@0[bytes 8..16]"]


def test_arrays_that_only_copies_read_have_contents() -> None:
    program = ring()
    data = contents(program, "g")
    assert len({data[k : k + 2] for k in range(0, 32, 2)}) == 16
    assert not any(contents(program, "out"))
    assert intended(program)["P:r0"] == int.from_bytes(data[16:20], "little")


@pytest.mark.parametrize(
    "extra",
    [
        "ld.global.u32 r1, [g];",
        "setp.eq.u32 %p, r0, 0;\n  @%p exit;",
        "and.b32 r2, r0, 4;\n  add.u32 r2, r2, s;\n  ld.shared.u32 r3, [r2];",
    ],
)
def test_data_that_control_may_depend_on_stays(extra: str) -> None:
    assert not any(contents(ring(extra), "g"))


def test_a_test_with_a_question_stays_as_it_is() -> None:
    program = load_test(str(LITMUS / "bulk/bulk-load-wait-read.litmus"))
    assert observed(program) is program


def test_many_words_are_sampled_from_end_to_end() -> None:
    found = labels(observed(load_test(str(LITMUS / "kernels/A04-one-warp-of-four-without-fence.litmus"))))
    assert len(found) == MOST
    assert {"g[bytes 0..8]", "g[bytes 504..512]", "s@0[bytes 504..512]"} <= set(found)


def test_a_sketch_is_looked_at_for_what_it_is_not_written_to_do() -> None:
    _, row = entry(ring(), 0)
    assert row["contents"]
    assert row["aim"][0] == "not"
    assert ["==", "P:r0", intended(ring())["P:r0"]] in row["aim"][1]


def test_a_test_that_only_waits_is_observed_to_end() -> None:
    made, row = entry(observed(load_test(str(LITMUS / "mbarrier/mbarrier-arrive-drop.litmus"))), 0)
    assert made.watched == ()
    assert row["aim"] is True


def test_what_was_run_before_is_compared_as_it_was_run() -> None:
    program = parse(RING.replace("EXTRA", ""), "r.litmus")
    assert labels(observed_as(program, ["P:r0"], contents=False)) == ["P:r0"]
    assert not any(contents(observed_as(program, ["P:r0"], contents=False), "g"))
    known = intended(ring())
    seen = Observation("r", "0", tuple(known), program.source, contents=True)
    seen.states[tuple(known.values())] = 5
    as_run = observed_as(program, seen.terms, contents=True)
    assert not compare(as_run, seen, load_model("ptx-9.0")).contradicts
    seen.states[tuple(value ^ 1 for value in known.values())] = 1
    assert compare(as_run, seen, load_model("ptx-9.0")).contradicts


def test_states_of_other_terms_are_no_states_of_these(tmp_path: Path) -> None:
    rows = [
        {"name": "r", "hash": "0", "pass": "1", "terms": ["P:r0"], "status": "ok", "states": [[[0], 7]]},
        {"name": "r", "hash": "0", "pass": "2", "terms": ["x"], "contents": True, "status": "ok", "states": [[[1], 2]]},
        {"name": "r", "hash": "0", "pass": "3", "terms": ["x"], "contents": True, "status": "ok", "states": [[[1], 3]]},
    ]
    path = tmp_path / "seen.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    _, found = load(path)
    assert found["0"].states == {(1,): 5}
    assert found["0"].contents


def test_generic_addresses_of_shared_memory() -> None:
    made = kernel(observed(load_test(str(LITMUS / "undefined/undefined-init-generic-address-ok.litmus"))), "t0")
    assert made.text.count("cvta.shared.u64") == 2


def test_what_the_assembler_does_not_take_is_left_out() -> None:
    with pytest.raises(CannotEmit, match="count 0"):
        kernel(observed(load_test(str(LITMUS / "mbarrier/mbarrier-init-count-on-a-path-not-taken.litmus"))), "t0")


@pytest.mark.parametrize("make", [kernel, whole])
def test_pauses_keep_their_operand(make: Callable[[Program, str], Kernel]) -> None:
    """Changes of the number of registers go: the kernel has others than the one that the test is about."""
    code = "mov.u32 r1, 50;\n nanosleep.u32 20;\n nanosleep.u32 r1;\n setmaxnreg.dec.sync.aligned.u32 40;"
    head = "PTX n\ntarget sm_90a\n{ .global .u32 x; }\nP@cta 0 {\n "
    test = f"{head}{code}\n st.global.u32 [x], 1;\n}}\nexists (x == 1)\n"
    text = make(parse(test, "n.litmus"), "t0").text
    assert "nanosleep.u32 20;" in text
    assert "nanosleep.u32 %t0_r1;" in text
    assert "setmaxnreg" not in text


def test_bytes_of_tensor_maps_are_not_watched() -> None:
    """They hold addresses, which no two instances have in common."""
    found = labels(observed(load_test(str(LITMUS / "kernels/O02-map-edited-in-shared-memory-fixed.litmus"))))
    assert found
    assert all(label.startswith("s@0[") for label in found)
