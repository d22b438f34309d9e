"""Where no execution is one of the model, nothing is proved."""

from __future__ import annotations

import pytest

from mcheck.cat import load_model, parse_model
from mcheck.cat.ast import Model
from mcheck.engines.protocol.findings_answer import NO_EXECUTION, check
from mcheck.frontend.litmus import parse
from tests.cat.pretty import show_statement

TEXT = """PTX two
{ .global .u32 x; .global .u32 y; }
P@cta 0 { st.global.u32 [x], 1; st.global.u32 [y], 1; }
Q@cta 1 { ld.global.u32 r0, [y]; ld.global.u32 r1, [x]; }
exists (Q:r0 == 1)
"""


def edited(axiom: str) -> Model:
    """ptx-9.0 with an axiom more."""
    whole = "\n".join(map(show_statement, load_model("ptx-9.0").statements))
    return parse_model(f'"edited"\n(* mcheck: semantics = ptx-9.0 *)\n{whole}\n{axiom}\n', "edited.cat")


@pytest.mark.parametrize("axiom", ["acyclic po | po^-1 as Nothing", "irreflexive po; po^-1 as Nothing"])
def test_a_model_that_allows_no_execution_proves_nothing(axiom: str) -> None:
    found = check(parse(TEXT, "two.litmus"), edited(axiom), timeout=30)
    assert (found.verdict, found.reasons) == ("unknown", (NO_EXECUTION,))
