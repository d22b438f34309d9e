"""``mcheck compare``: two models, test by test."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Litmus = Callable[..., Path]
FENCES = """\
PTX fences
{ x=0; f=0; }
 P0@cta 0,gpu 0           | P1@cta 1,gpu 0           ;
 st.weak x, 1             | ld.relaxed.gpu r0, f     ;
 fence.release.gpu        | fence.acquire.gpu        ;
 st.relaxed.gpu f, 1      | ld.weak r1, x            ;
exists (P1:r0 == 1 /\\ P1:r1 == 0)
"""


def test_equal_models_agree(mcheck: Any, litmus: Litmus) -> None:
    done = mcheck("compare", "ptx-9.0", "ptx-9.0", litmus("MP"))
    assert done.status == 0
    assert done.out == "1 test under ptx-9.0 and ptx-9.0: 0 differ\n"


def test_a_state_that_one_model_forbids(mcheck: Any, litmus: Litmus, tmp_path: Path) -> None:
    """A model without its causality axiom allows more; the other says by which axiom and cycle it does not."""
    weaker = tmp_path / "weaker.cat"
    text = mcheck("models", "ptx-9.0").out
    axiom = "irreflexive ((rf | fr); causality) as Causality"
    assert axiom in text
    weaker.write_text(text.replace(axiom, ""))
    path = litmus("MP")
    done = mcheck("compare", "ptx-9.0", weaker, path)
    assert done.status == 1
    assert f"ptx-9.0: pass; {weaker}: fail" in done.out
    assert f"P1:r0=1; P1:r1=0;  only under {weaker}" in done.out
    assert "ptx-9.0 forbids it by Causality: d: P1 R x = 0 -fr→ a: P0 W x = 1 -po→ b: P0 W f = 1" in done.out
    assert "P1: ld.weak r1, x  reads x = 0 from the initial value" in done.out
    back = mcheck("compare", weaker, "ptx-9.0", path)
    assert back.status == 1
    assert f"only under {weaker}" in back.out


def test_as_json(mcheck: Any, litmus: Litmus, tmp_path: Path) -> None:
    litmus("suite/MP")
    litmus("suite/fences", text=FENCES)
    target = tmp_path / "out.json"
    done = mcheck("compare", "sc", "ptx-9.0", tmp_path / "suite", "--format", "json", "-o", target)
    found = json.loads(target.read_text())
    assert found["models"] == ["sc", "ptx-9.0"]
    assert [t["name"] for t in found["tests"]] == ["MP", "fences"] or found["differ"]
    assert done.status == (1 if found["differ"] else 0)
    for test in found["tests"]:
        assert set(test) == {"path", "name", "differs", "verdicts", "undefined", "alone", "reason"}


def test_the_smallest_difference_is_told_in_full_at_the_end(mcheck: Any, litmus: Litmus, tmp_path: Path) -> None:
    weaker = tmp_path / "weaker.cat"
    text = mcheck("models", "ptx-9.0").out
    weaker.write_text(text.replace("irreflexive ((rf | fr); causality) as Causality", ""))
    litmus("suite/a", text=FENCES.replace("PTX fences", "PTX a"))
    litmus("suite/b")
    done = mcheck("compare", "ptx-9.0", weaker, tmp_path / "suite", "-j", 1)
    rows, _, smallest = done.out.partition("the smallest difference:")
    assert "a.litmus" in rows
    assert "b.litmus" in rows
    assert "b.litmus" in smallest
    assert "a.litmus" not in smallest
    assert done.out.endswith("2 differ\n")


def test_a_test_that_cannot_be_read(mcheck: Any, litmus: Litmus, tmp_path: Path) -> None:
    litmus("suite/ok")
    litmus("suite/broken", text="PTX broken\n{ }\n P0@cta 0,gpu 0 ;\n st.wek x, 1 ;\n")
    done = mcheck("compare", "sc", "ptx-9.0", tmp_path / "suite")
    assert done.status == 2
    assert "broken.litmus" in done.out
    assert "1 error" in done.out


def test_an_unknown_model(mcheck: Any, litmus: Litmus) -> None:
    done = mcheck("compare", "ptx-9.0", "ptx-9.1", litmus("MP"))
    assert done.status == 2
    assert "ptx-9.1" in done.err


ASYNCHRONOUS = """PTX copy
{
  .global .align 16 .u32 src[4];
  .shared .align 16 .u32 buf[4];
}
P@cta 0 {
  cp.async.ca.shared.global [buf], [src], 16;
  ld.shared.u32 r0, [buf];
}
exists (P:r0 == 1)
"""


def test_a_model_without_rules_for_it_is_not_compared(mcheck: Any, litmus: Litmus) -> None:
    copy, plain = litmus("copy", text=ASYNCHRONOUS), litmus("MP")
    done = mcheck("compare", "ptx-7.5", "ptx-9.0", copy, plain)
    assert "1 test not compared: ptx-7.5 has no rules for asynchronous operations" in done.out
    assert "1 test under ptx-7.5 and ptx-9.0: 0 differ" in done.out
    assert done.status == 3, "silence is no agreement"
    assert mcheck("compare", "ptx-9.0", "ptx-9.3", copy).status == 0
    written = json.loads(mcheck("compare", "sc", "ptx-9.0", copy, "--format", "json").out)
    found = {t["name"]: t for t in written["tests"]}
    assert found["copy"]["reason"] == "sc has no rules for asynchronous operations"
