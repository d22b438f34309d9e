"""What a launch finds in the variables of its module: what earlier launches, or other clusters, may have left there."""

from __future__ import annotations

from typing import Any

import pytest

from mcheck.ptx import check

HEAD = """.version 8.7
.target sm_90a
.address_size 64
"""
SET = """.visible .entry set() { st.global.u32 [flag+4], 1; ret; }
"""
IF_SET = """.visible .entry race(.param .u64 x) .reqntid 64, 1, 1 {
  BODY
  .reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [x];
  LOAD
  setp.eq.u32 %p1, %r1, 0;
  @%p1 bra DONE;
  mov.u32 %r2, %tid.x;
  st.global.u32 [%rd1], %r2;
DONE:
  ret; }
"""
GLOBAL = "ld.global.u32 %r1, [flag+4];"
GENERIC = "mov.u64 %rd2, flag; cvta.global.u64 %rd2, %rd2; ld.u32 %r1, [%rd2+4];"
RACE: dict[str, Any] = {"entry": "race", "grid": 1, "params": {"x": {"buffer": 4}}}
AFTER_SET = {"launches": [{"entry": "set", "grid": 1, "block": 1}, RACE]}


@pytest.mark.daily
@pytest.mark.parametrize("load", [GLOBAL, GENERIC], ids=["global", "generic"])
@pytest.mark.parametrize("initial", ["", " = {0, 0}", " = {7}"])
def test_a_launch_forgets_what_earlier_ones_write(initial: str, load: str) -> None:
    text = f"{HEAD}.global .align 4 .u32 flag[2]{initial};\n{SET}{IF_SET.replace('BODY', '').replace('LOAD', load)}"
    assert check(text, RACE).verdict == "proved"  # the first launch of the module
    assert check(text, AFTER_SET).verdict == "unknown"
    reads = text.replace("st.global.u32 [flag+4], 1;", "")
    assert check(reads, AFTER_SET).verdict == "proved"


@pytest.mark.parametrize("initial", ["", " = 0"])
def test_a_second_launch_finds_what_the_first_left_in_a_variable_of_its_function(initial: str) -> None:
    """Each launch counts in a variable that nothing resets, and goes wrong if it was not 0."""
    count = "ld.global.u32 %r1, [flag]; bar.sync 0; st.global.u32 [flag], 1;"
    body = IF_SET.replace("BODY", f".global .align 4 .u32 flag{initial};").replace("LOAD", count)
    text = HEAD + body.replace("bar.sync 0; st", "bar.sync 0; mov.u32 %r3, %tid.x; setp.eq.u32 %p2, %r3, 0; @%p2 st")
    assert check(text, RACE).verdict == "proved"
    assert check(text, {"launches": [RACE, RACE]}).verdict == "unknown"


LAST_BLOCK = """.visible .entry last(.param .u64 count, .param .u64 d) .reqntid 32, 1, 1 {
  .reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [count]; ld.param.u64 %rd2, [d];
  mov.u32 %r1, %tid.x; mov.u32 %r3, %ctaid.x;
  setp.ne.u32 %p1, %r1, 0; @%p1 bra DONE;
  mul.wide.u32 %rd3, %r3, 4; add.u64 %rd3, %rd2, %rd3;
  st.global.u32 [%rd3], %r3;
  setp.eq.u32 %p3, %r3, 1; @%p3 st.global.u32 [flag], 1;
  fence.acq_rel.gpu;
  atom.acq_rel.gpu.global.add.u32 %r2, [%rd1], 1;
  setp.ne.u32 %p2, %r2, 9; @%p2 bra DONE;
  fence.acq_rel.gpu;
  ld.global.u32 %r4, [%rd2+4];
  ld.global.u32 %r6, [flag]; setp.eq.u32 %p3, %r6, 0; @%p3 bra DONE;
  st.global.u32 [%rd2+4096], %r6;
DONE:
  ret; }
"""


@pytest.mark.daily(days=4, least=0)
@pytest.mark.parametrize("initial", ["", " = 0"])
def test_pairs_of_clusters_forget_what_a_third_one_writes(initial: str) -> None:
    """The last of ten CTAs writes out of bounds if CTA 1 has set a flag, as it always has."""
    count = {"buffer": 4, "init": {"hex": "00000000"}}
    launch = {"grid": 10, "params": {"count": count, "d": {"buffer": 40}}}
    text = f"{HEAD}.global .align 4 .u32 flag{initial};\n{LAST_BLOCK}"
    assert check(text, launch).verdict == "bounded"
    assert check(text.replace("@%p3 st.global.u32 [flag], 1;", ""), launch).verdict == "proved"


SIGNAL = """.visible .entry signal(.param .u64 flag, .param .u64 mark) .reqntid 1, 1, 1 {
  .reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [flag]; ld.param.u64 %rd2, [mark];
  mov.u32 %r1, %ctaid.x; setp.eq.u32 %p1, %r1, 0; @%p1 bra FIRST;
WAIT:
  ld.acquire.gpu.global.u32 %r2, [%rd1]; setp.ne.u32 %p2, %r2, 1; @%p2 bra WAIT;
  st.global.u32 [%rd2], 1;
  ret;
FIRST:
  st.release.gpu.global.u32 [%rd1], 1;
  ret; }
.visible .entry get(.param .u64 mark) .reqntid 1, 1, 1 {
  .reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<8>;
  ld.param.u64 %rd2, [mark];
  ld.global.u32 %r1, [%rd2]; setp.eq.u32 %p1, %r1, 0; @%p1 bra DONE;
  st.global.u32 [%rd2+4096], %r1;
DONE:
  ret; }
"""


@pytest.mark.daily(days=4, least=0)
def test_what_comes_after_a_wait_for_another_cluster_may_have_been_written() -> None:
    """CTA 1 marks a word when CTA 0 has set a flag; the next launch writes out of bounds if the word is marked."""
    words = {name: {"bytes": 4, "init": {"hex": "00000000"}} for name in ("f", "m")}
    signal = {"entry": "signal", "grid": 2, "cooperative": True,
              "params": {"flag": {"buffer": "f"}, "mark": {"buffer": "m"}}}  # fmt: skip
    get = {"entry": "get", "grid": 1, "params": {"mark": {"buffer": "m"}}}
    assert check(HEAD + SIGNAL, {"launches": [signal], "buffers": words}).verdict == "proved"
    assert check(HEAD + SIGNAL, {"launches": [signal, get], "buffers": words}).verdict == "unknown"


@pytest.mark.parametrize(("attribute", "verdict"), [("", "proved"), (".attribute(.managed)", "unknown")])
def test_gpus_have_managed_variables_in_common(attribute: str, verdict: str) -> None:
    """PTX ISA 5.4.8. Each GPU has its own of the others."""
    text = f"{HEAD}.visible .global {attribute} .align 4 .u32 flag[2];\n{SET}" + IF_SET.replace("BODY", "").replace(
        "LOAD", GLOBAL
    )
    launches = [{"entry": "set", "grid": 1, "block": 1, "gpu": 0}, {**RACE, "gpu": 1}]
    assert check(text, {"launches": launches}).verdict == verdict
