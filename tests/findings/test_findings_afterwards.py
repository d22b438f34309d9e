"""Undefined behaviour that a file accepts at its line does not hide what comes later; any other ends its thread."""

from __future__ import annotations

import pytest

from mcheck.cat import load_model
from mcheck.engines.concrete.machine import machine
from mcheck.engines.concrete.schedule import run
from mcheck.engines.explicit.engine import answer as explicit
from mcheck.engines.z3.engine import answer as solver
from mcheck.findings import catalogue
from mcheck.frontend.litmus import parse

ACCEPTED = "// mcheck: ignore {} the chip does what we want"
PROGRAMS = {
    "a bit of the mask that names nobody": (
        """PTX t
{{ .global .align 16 .b8 src[16]; .shared .align 16 .b8 buf[16]; .shared .align 8 .b64 bar; }}
P@cluster 0, cta 0 {{
  mbarrier.init.shared::cta.b64 [bar], 1;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [buf], [src], 16, [bar], 5; {0}
  ld.shared.u32 r0, [buf];
  await mbarrier.try_wait.parity.shared::cta.b64 [bar], 0;
}}
""",
        "UB107",
        "RACE003",
    ),
    "a load that leaves its object": (
        """PTX t
{{ .global .u32 x; .global .u32 y; }}
P@cta 0 {{ ld.global.u32 r0, [x + 64]; {0}
  st.global.u32 [y], 1; }}
Q@cta 1 {{ ld.global.u32 r0, [y]; }}
""",
        "UB103",
        "RACE001",
    ),
    "an arrival too many": (
        """PTX t
{{ .global .u32 y; .shared .align 8 .b64 bar; }}
P@cta 0 {{
  mbarrier.init.shared::cta.b64 [bar], 1;
  mbarrier.arrive.shared::cta.b64 _, [bar], 2; {0}
  st.global.u32 [y], 1;
}}
Q@cta 1 {{ ld.global.u32 r0, [y]; }}
""",
        "UB205",
        "RACE001",
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("engine", [explicit, solver], ids=["explicit", "z3"])
def test_what_is_accepted_hides_nothing(engine: object, name: str) -> None:
    text, code, later = PROGRAMS[name]
    model = load_model("ptx-9.0")
    stops, goes_on = (parse(text.format(comment), "t.litmus") for comment in ("", ACCEPTED.format(code)))
    found = engine(stops, model, findings=True)  # type: ignore[operator]
    assert {f.code for f in found.findings if f.severity == "error"} == {code}
    found = engine(goes_on, model, findings=True)  # type: ignore[operator]
    if found.verdict == "unknown":
        assert (engine, code) == (solver, "UB205"), (
            "Z3 leaves misuse of mbarriers that a file accepts to the other engine"
        )
        return
    assert {code, later} <= {f.code for f in found.findings if f.severity == "error"}


@pytest.mark.parametrize("name", PROGRAMS)
def test_exec_goes_on_too(name: str) -> None:
    text, code, _ = PROGRAMS[name]
    for comment, ended in (("", False), (ACCEPTED.format(code), True)):
        m = machine(parse(text.format(comment), "t.litmus"))
        run(m)
        assert code in {f.code for f in m.findings}
        assert m.runners[0].ended is ended


def test_a_suppression_of_another_code_accepts_nothing() -> None:
    text, code, _ = PROGRAMS["a load that leaves its object"]
    program = parse(text.format("// mcheck: ignore UB2 for another reason"), "t.litmus")
    found = explicit(program, load_model("ptx-9.0"), findings=True)
    assert {f.code for f in found.findings if f.severity == "error"} == {code}


def test_the_catalogue_says_what_happens_afterwards() -> None:
    going_on = {e.code for e in catalogue.all() if e.continues}
    assert going_on == {e.code for e in catalogue.all() if e.kind == "race"} | {
        "UB212", "UB216", "UB307", "UB501", "UB502", "UB503", "UB504", "UB601", "UB604", "UB606", "UB701", "UB702"
    }  # fmt: skip
    assert {e.consequence for e in catalogue.all() if e.kind == "deadlock"} == {"the thread waits forever"}
