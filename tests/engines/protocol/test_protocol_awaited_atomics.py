"""Failed attempts of awaited atomics that change memory are not left out."""

from __future__ import annotations

import pytest

from mcheck.cat import load_model
from mcheck.engines.protocol.findings_answer import check
from mcheck.frontend.litmus import parse

TEXT = """PTX attempts
{{ .global .u32 x = 0; .global .u32 d = 0; }}
P0@cta 0 {{ await atom.relaxed.gpu.global.{atomic}; }}
P1@cta 1 {{ {other} }}
"""
LOOK = "ld.relaxed.gpu.global.u32 r0, [x]; if (r0 == 1) { st.global.u32 [d], 1; } st.relaxed.gpu.global.u32 [x], 2;"
CHANGE = {
    "exchange": ("exch.b32 r9, [x], 1 == 2", LOOK),
    "addition": ("add.u32 r9, [x], 1 == 1", ""),
    "swap-that-waits-for-another-value": ("cas.b32 r9, [x], 0, 1 == 1", ""),
    "third-value": ("exch.b32 r9, [x], 1 == 0", "st.relaxed.gpu.global.u32 [x], 5;"),
    "value-of-a-register": ("exch.b32 r9, [x], 1 == 0", "st.relaxed.gpu.global.u32 [x], r7;"),
    "half-of-the-word": ("exch.b32 r9, [x], 1 == 0", "st.relaxed.gpu.global.u16 [x], 0;"),
}
KEEP = {
    "swap": ("cas.b32 r9, [x], 0, 1 == 0", "st.relaxed.gpu.global.u32 [x], 5; st.relaxed.gpu.global.u32 [x], 0;"),
    "swap-unless": ("cas.b32 r9, [x], 0, 1 != 1", "st.relaxed.gpu.global.u32 [x], 1;"),
    "lock": (
        "exch.b32 r9, [x], 1 == 0",
        "await atom.relaxed.gpu.global.exch.b32 r9, [x], 1 == 0; st.relaxed.gpu.global.u32 [x], 0;",
    ),
}


def text(atomic: str, other: str) -> str:
    """The test with this atomic, and another thread."""
    return TEXT.format(atomic=atomic, other=other)


@pytest.mark.parametrize("case", CHANGE)
def test_attempts_that_change_memory_are_not_followed(case: str) -> None:
    found = check(parse(text(*CHANGE[case]), "a.litmus"), load_model("ptx-9.0"))
    assert found.verdict == "unknown"
    assert "failed attempts" in (found.reason or "")


@pytest.mark.parametrize("case", KEEP)
def test_attempts_that_change_nothing_are_followed(case: str) -> None:
    found = check(parse(text(*KEEP[case]), "a.litmus"), load_model("ptx-9.0"))
    assert "failed attempts" not in (found.reason or "")
