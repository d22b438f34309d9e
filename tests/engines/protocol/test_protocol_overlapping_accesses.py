"""Words of which an access of another extent writes a part, or more than them: a read that is ordered behind it returns
what it has left. Whatever writes them, the engine agrees with the explicit one.
"""

from __future__ import annotations

from random import Random

import pytest

from mcheck.cat import load_model
from mcheck.frontend.litmus import parse
from tests.engine_findings import engine_findings
from tests.fuzz.overlaps import overlaps

PTX = load_model("ptx-9.0")
TURNS = """PTX turns
{{ .global .align 16 .u32 y[4] = {{2, 2, 2, 2}}; .global .align 16 .u32 z[4]; .shared .align 16 .u32 s[4]; }}
Q@cta 0, warp 1, lane 0 {{ {first} bar.sync 0; bar.sync 0; {last} }}
P@cta 0, warp 2, lane 0 {{ bar.sync 0; {writes} bar.sync 0; }}
"""
BULK = """st.shared.v4.u32 [s], {0, 0, 0, 0}; fence.proxy.async; OP cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0; fence.proxy.async;"""
TO_GLOBAL = {
    "copy": BULK.replace("OP", "cp.async.bulk.global.shared::cta.bulk_group [y], [s], 16;"),
    "reduction": BULK.replace("OP", "cp.reduce.async.bulk.global.shared::cta.bulk_group.and.b64 [y], [s], 16;"),
    "strong-store": "st.relaxed.gpu.global.u64 [y], 0;",
    "weak-store": "st.global.u64 [y], 0;",
    "part": "st.global.u16 [y + 4], 0; st.global.u16 [y + 6], 0;",
    "atomic": "atom.relaxed.gpu.global.exch.b64 r3, [y], 0;",
    "red": "red.relaxed.gpu.global.and.b64 [y], 0;",
}
TO_SHARED = {
    "cp.async": "cp.async.ca.shared.global [s], [z], 16; cp.async.wait_all;",
    "st.bulk": "st.bulk.weak.shared::cta [s], 16, 0;",
}
LOOKS = {
    "await": "await ld.acquire.gpu.{0}.u32 r2, [{1}] == 2;",
    "strong": "ld.relaxed.gpu.{0}.u32 r2, [{1}]; if (r2 == 0) {{ bar.sync 1, 96; }}",
    "weak": "ld.{0}.u32 r2, [{1}]; if (r2 == 0) {{ bar.sync 1, 96; }}",
}


def codes(text: str, engine: str) -> frozenset[str] | None:
    """The codes of all findings; ``None`` if there may be others."""
    found = engine_findings(engine, parse(text, "overlap.litmus"), PTX, timeout=60)
    return found.codes if found.complete else None


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("writes", [*TO_GLOBAL, *TO_SHARED])
def test_what_overwrites_a_word_in_part_is_read_behind_it(writes: str, look: str) -> None:
    where = ("global", "y + 4") if writes in TO_GLOBAL else ("shared", "s + 4")
    first = f"st.{where[0]}.u32 [{where[1]}], 2; ld.relaxed.gpu.{where[0]}.u32 r1, [{where[1]}];"
    text = TURNS.format(first=first, writes=(TO_GLOBAL | TO_SHARED)[writes], last=LOOKS[look].format(*where))
    assert codes(text, "protocol") == {"DEAD004" if look == "await" else "DEAD002"}


def test_one_address_is_accessed_in_two_sizes() -> None:
    first = "ld.relaxed.gpu.global.u32 r1, [y];"
    last = "ld.relaxed.gpu.global.u64 %rd2, [y]; if (%rd2 == 0x300000000) { bar.sync 1, 96; }"
    writes = "atom.relaxed.gpu.global.exch.b64 %rd3, [y], 0; red.relaxed.gpu.global.add.u32 [y + 4], 3;"
    assert codes(TURNS.format(first=first, writes=writes, last=last), "protocol") == {"DEAD002"}


@pytest.mark.daily
@pytest.mark.parametrize("number", range(24))
def test_random_overlaps(number: int) -> None:
    for k in range(4 * number, 4 * number + 4):
        text = overlaps(Random(f"overlaps:{k}")).text()
        theirs = codes(text, "protocol")
        assert theirs is None or theirs == codes(text, "explicit"), text
