"""What the classic models allow, on programs small enough to know it otherwise.

An interleaving machine is the yardstick: ``sc`` allows exactly its states, the PTX models allow at least these, and
exactly these where a fence.sc.sys stands between any two accesses of a thread.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcheck.cat import load_model, parse_model
from mcheck.cat.ast import Model
from mcheck.engines.explicit.engine import answer
from mcheck.frontend.litmus import parse
from tests.samples import examples

LOCATIONS = ("x", "y")
PTX = ("ptx-6.0", "ptx-7.5")

Access = tuple[str, str]  # ld, st or add, and a location
Code = tuple[tuple[Access, ...], ...]  # by thread

access = st.tuples(st.sampled_from(["ld", "ld", "st", "st", "add"]), st.sampled_from(LOCATIONS))
programs = st.lists(st.lists(access, min_size=1, max_size=3).map(tuple), min_size=2, max_size=3).map(tuple)


def registers(code: Code) -> list[tuple[int, int]]:
    """(thread, index) of every access that returns a value."""
    return [(t, i) for t, thread in enumerate(code) for i, (kind, _) in enumerate(thread) if kind != "st"]


def text(code: Code, *, fence: str | None = None, scope: str = "sys") -> str:
    """The table form; every store writes its own value, every atomic adds its own power of two."""
    columns = []
    for t, thread in enumerate(code):
        rows = []
        for i, (kind, location) in enumerate(thread):
            if i and fence:
                rows.append(fence)
            value = number(t, i)
            if kind == "ld":
                rows.append(f"ld.relaxed.{scope} r{i}, {location}")
            elif kind == "st":
                rows.append(f"st.relaxed.{scope} {location}, {value}")
            else:
                rows.append(f"atom.relaxed.{scope}.add r{i}, {location}, {value}")
        columns.append(rows)
    height = max(map(len, columns))
    lines = [" | ".join(f"P{t}@cta {t},gpu 0" for t in range(len(code))) + " ;"]
    lines += [" | ".join(c[row] if row < len(c) else "" for c in columns) + " ;" for row in range(height)]
    terms = [f"P{t}:r{i} == 0" for t, i in registers(code)] + [f"{location} == 0" for location in LOCATIONS]
    return "PTX random\n{ x=0; y=0; }\n" + "\n".join(lines) + "\nexists (" + " /\\ ".join(terms) + ")\n"


def number(thread: int, index: int) -> int:
    return 1 << (3 * thread + index)


def interleaved(code: Code) -> set[tuple[int, ...]]:
    """The final states of the machine that runs one access after the other, in the order of ``text``'s condition."""
    found: set[tuple[int, ...]] = set()
    seen: set[object] = set()
    order = registers(code)

    def run(at: tuple[int, ...], memory: dict[str, int], values: dict[tuple[int, int], int]) -> None:
        key = (at, tuple(memory.items()), tuple(sorted(values.items())))
        if key in seen:
            return
        seen.add(key)
        if all(at[t] == len(thread) for t, thread in enumerate(code)):
            found.add((*(values[register] for register in order), *(memory[location] for location in LOCATIONS)))
        for t, thread in enumerate(code):
            if at[t] == len(thread):
                continue
            kind, location = thread[at[t]]
            later, got = dict(memory), dict(values)
            if kind != "st":
                got[t, at[t]] = memory[location]
            if kind != "ld":
                later[location] = number(t, at[t]) + (memory[location] if kind == "add" else 0)
            run((*at[:t], at[t] + 1, *at[t + 1 :]), later, got)

    run((0,) * len(code), dict.fromkeys(LOCATIONS, 0), {})
    return found


def states(source: str, model: Model) -> set[tuple[object, ...]]:
    result = answer(parse(source, "random.litmus"), model)
    assert result.complete
    return {tuple(value for _, value in outcome.state) for outcome in result.outcomes}


@examples(60)
@given(programs)
def test_sc_allows_what_interleavings_give(code: Code) -> None:
    assert states(text(code), load_model("sc")) == interleaved(code)


@examples(25)
@given(programs, st.sampled_from(PTX))
def test_ptx_allows_every_interleaving(code: Code, name: str) -> None:
    allowed = states(text(code), load_model(name))
    assert allowed >= interleaved(code)


@examples(25)
@given(programs, st.sampled_from(PTX))
def test_fences_between_all_accesses_restore_interleavings(code: Code, name: str) -> None:
    assert states(text(code, fence="fence.sc.sys"), load_model(name)) == interleaved(code)


@examples(25)
@given(st.lists(st.lists(access, min_size=1, max_size=2).map(tuple), min_size=2, max_size=3).map(tuple))
def test_the_ptx_models_agree_where_there_are_no_proxies(code: Code) -> None:
    old, new = (states(text(code, scope="cta"), load_model(name)) for name in PTX)
    assert old == new


MESSAGE = """PTX MP
{{ x=0; f=0; }}
 P0@cta 0,gpu 0    | P1@cta 1,gpu 0    ;
 st.weak x, 1      | {read}            ;
 {first}           | {second}          ;
 {write}           | ld.weak r1, x     ;
exists (P1:r0 == 1 /\\ P1:r1 == 0)
"""
RELAXED = {"read": "ld.relaxed.gpu r0, f", "write": "st.relaxed.gpu f, 1"}


@pytest.mark.parametrize("name", PTX)
@pytest.mark.parametrize("first", ["fence.sc.gpu", "fence.acq_rel.gpu"])
@pytest.mark.parametrize("second", ["fence.sc.gpu", "fence.acq_rel.gpu"])
def test_a_fence_sc_is_a_release_and_an_acquire_fence(name: str, first: str, second: str) -> None:
    forbidden = MESSAGE.format(first=first, second=second, **RELAXED)
    assert answer(parse(forbidden, "mp.litmus"), load_model(name)).verdict == "fail"


@pytest.mark.parametrize("name", PTX)
@pytest.mark.parametrize("name_of_scope", ["cta", "gpu"])
def test_a_fence_too_narrow_publishes_nothing(name: str, name_of_scope: str) -> None:
    source = MESSAGE.format(first=f"fence.sc.{name_of_scope}", second=f"fence.sc.{name_of_scope}", **RELAXED)
    expected = "pass" if name_of_scope == "cta" else "fail"
    assert answer(parse(source, "mp.litmus"), load_model(name)).verdict == expected


BARRIERS = """PTX SB+bars
{ x=0; y=0; }
 P0@cta 0,gpu 0    | P1@cta 0,gpu 0    ;
 st.weak x, 1      | st.weak y, 1      ;
 bar.cta.sync 1    | bar.cta.sync 1    ;
 ld.weak r0, y     | ld.weak r1, x     ;
exists (P0:r0 == 0 \\/ P1:r1 == 0)
"""


@pytest.mark.parametrize("name", ["sc", *PTX])
def test_a_barrier_orders_what_stands_before_it(name: str) -> None:
    assert answer(parse(BARRIERS, "bars.litmus"), load_model(name)).verdict == "fail"
    apart = BARRIERS.replace("P1@cta 0", "P1@cta 1").replace("\\/", "/\\")
    assert answer(parse(apart, "bars.litmus"), load_model(name)).verdict == ("fail" if name == "sc" else "pass")


def test_total_coherence_included_is_that_of_sc() -> None:
    own = parse_model('include "cos.cat"\nacyclic po | rf | co | fr as SC\nempty rmw & (fr; co) as At', "own.cat")
    code: Code = ((("st", "x"), ("add", "x")), (("st", "x"), ("ld", "x")), (("add", "x"), ("ld", "y")))
    assert states(text(code), own) == interleaved(code)
