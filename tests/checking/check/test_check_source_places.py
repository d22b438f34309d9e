"""Reasons in terms of the source that a module was compiled from."""

from __future__ import annotations

from dataclasses import replace

from mcheck.base.reasons import Cause, Reason
from mcheck.checking.check.source_places import locate_reasons
from mcheck.frontend.ptx.module import SourceLine

WHAT = "the value that 'st.shared.u8 [_ZZ6splitkPKfS0_PfS1_PiiE4last], %rs1' stores depends on %ctaid"


def test_reasons_have_the_names_of_the_source() -> None:
    reason = Reason(Cause.NOT_FOLLOWED, WHAT, because=(Reason(Cause.NOT_FOLLOWED, "line 12 is not followed"),))
    lines = {(12, 3): SourceLine("k.cu", 16, 5)}
    (found,) = locate_reasons((reason,), lines)
    assert found.what == WHAT.replace("_ZZ6splitkPKfS0_PfS1_PiiE4last", "last")
    assert found.because[0].what == "k.cu:16 is not followed"
    assert locate_reasons((replace(reason, what="_Zebra is a name"),), lines)[0].what == "_Zebra is a name"
    assert locate_reasons((reason,), {}) == (reason,), "a module that no source was compiled to has its own names"
