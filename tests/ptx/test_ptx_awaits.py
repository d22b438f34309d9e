"""Loads that are repeated until a value comes: what they wait for, and what is found where it never comes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from mcheck.cat import load_model
from mcheck.policy.question import About, Question
from mcheck.ptx import module as ptx
from mcheck.ptx.answer import answer
from mcheck.ptx.launching import from_object, launch
from mcheck.ptx.reading import module
from mcheck.ptx.waiting import Wait, awaited

CORPUS = Path(__file__).parent / "corpus" / "cuda"


@pytest.mark.parametrize(
    ("old", "new", "verdict", "code"),
    [
        ("", "", "proved", ""),
        (r"ld\.acquire\.gpu", "ld.relaxed.gpu", "finding", "RACE001"),
        (r"st\.release\.gpu", "st.release.cta", "finding", "RACE010"),
        (r"st\.release\.gpu\.b32 .*;", "", "finding", "DEAD004"),
    ],
)
def test_a_chain_of_flags(old: str, new: str, verdict: str, code: str) -> None:
    text = (CORPUS / "flag_chain.ptx").read_text(encoding="utf-8")
    read = module(re.sub(old, new, text, count=1) if old else text)
    given = launch(read, from_object(json.loads((CORPUS / "flag_chain.json").read_text(encoding="utf-8"))))
    found = answer(read, given, load_model("ptx-9.0"), Question(about=About.FINDINGS, timeout=60))
    assert found.verdict == verdict, found.reason
    assert not code or code in {f.code for f in found.findings}


LOOP = """.version 8.5
.target sm_90
.address_size 64
.visible .entry loop(.param .u64 flag, .param .u32 least) {{
  .reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [flag];
  ld.param.u32 %r2, [least];
AGAIN:
  ld.acquire.gpu.b32 %r1, [%rd1];
  {body}
AFTER:
  ret;
}}
"""


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("setp.eq.u32 %p1, %r1, 0; @%p1 bra AGAIN;", ("!=", 0, True)),
        ("setp.ne.u32 %p1, %r1, 3; @%p1 bra AGAIN;", ("==", 3, True)),
        ("setp.ge.s32 %p1, %r1, %r2; @%p1 bra AFTER; nanosleep.u32 20; bra AGAIN;", (">=", 5, True)),
        ("setp.lt.s32 %p1, %r2, %r1; @!%p1 bra AGAIN;", (">", 5, True)),
        ("setp.eq.u32 %p1, %r1, 0; @%p1 bra AGAIN; add.u32 %r3, %r1, 1;", ("!=", 0, False)),
        ("setp.eq.u32 %p1, %r1, 0; st.global.u32 [%rd1+4], 1; @%p1 bra AGAIN;", None),
        ("setp.eq.u32 %p1, %r1, 0; add.u64 %rd1, %rd1, 4; @%p1 bra AGAIN;", None),
        ("setp.eq.u32 %p1, %r1, 0; @%p1 bra AFTER;", None),
    ],
)
def test_what_a_loop_waits_for(body: str, wanted: tuple[str, int, bool] | None) -> None:
    function = module(LOOP.format(body=body)).functions["loop"]
    at = next(k for k, s in enumerate(function.body) if "acquire" in s.opcode)

    def value(operand: ptx.Operand) -> int | None:
        return operand.value if isinstance(operand, ptx.Immediate) else 5

    found = awaited(function, at, value)
    if wanted is None:
        assert found is None
    else:
        assert isinstance(found, Wait)
        assert (found.operator, found.right, found.told) == wanted
        assert found.ends(wanted[1]) is (wanted[0] in ("==", ">="))
