"""Findings about accesses of two launches that nothing orders, and what is said where that is not certain."""

from __future__ import annotations

from mcheck.base.errors import Span
from mcheck.base.phrase import Code, Site, say
from mcheck.base.reasons import Cause, Reason
from mcheck.checking.modules.launches.launch_order import DOES, Conflict
from mcheck.checking.modules.launches.launch_study import LaunchStudy
from mcheck.findings import catalogue
from mcheck.findings.finding import Access, Finding
from mcheck.findings.fix import Fix, advise
from mcheck.simt.grid.footprints.footprint import READ
from mcheck.simt.grid.launches.launch_accesses import ANYWHERE, LaunchAccess
from mcheck.simt.grid.launches.wait_order import BEFORE

CODE = "RACE012"
_DONE = {"read": "read", "write": "written", "reduce": "added to", "update": "updated"}


def launch_race(conflict: Conflict, study: LaunchStudy, profile: str) -> Finding:
    """The finding for accesses that certainly race."""
    entry = catalogue.get(CODE)
    texts = {s.span: s.text for f in study.module.functions.values() for s in f.body}
    first, second = study.name(conflict.first), study.name(conflict.second)
    does, done = DOES[conflict.later.form.kind], _DONE[conflict.earlier.form.kind]
    later = f"{second} {does} bytes of {_memory(conflict)} {_when(conflict, study)}"
    message = f"{later}, and {first} may not have {done} them by then"
    accesses = (
        _access(conflict, conflict.second, conflict.later, 1, study, texts),
        _access(conflict, conflict.first, conflict.earlier, 0, study, texts),
    )
    return Finding(
        code=CODE, kind=entry.kind, severity=entry.severity(profile), said=(message,), accesses=accesses,
        fixes=(_suggest_wait(conflict, study),), section=entry.section,
    )  # fmt: skip


def uncertain_reason(conflict: Conflict, study: LaunchStudy) -> Reason:
    """What is said of accesses of which it is not known whether they are ordered, or of common bytes."""
    does, done = DOES[conflict.later.form.kind], DOES[conflict.earlier.form.kind]
    first, second = study.name(conflict.first), study.name(conflict.second)
    place = "" if conflict.earlier.span is None else f" in line {conflict.earlier.span.line}"
    if conflict.common is not None:
        said = f"{second} {does} bytes of {_memory(conflict)} that {first} {done}{place}"
    else:
        said = f"{second} {does} {_memory(conflict)}, and {first} {done} what may be the same bytes{place}"
    return Reason(Cause.GAP, f"{said}; {conflict.why}" if conflict.why else said, span=conflict.later.span)


def _memory(conflict: Conflict) -> str:
    for access in (conflict.later, conflict.earlier):
        if access.memory != ANYWHERE:
            return access.memory[1]
    return "memory at an unknown address"


def _access(
    conflict: Conflict, number: int, access: LaunchAccess, side: int, study: LaunchStudy, texts: dict[Span, str]
) -> Access:
    common, footprint = conflict.common, study.footprint(number)
    assert common is not None
    assert footprint is not None
    return Access(
        thread=f"{study.name(number)}, {footprint.cta(access, common.rows[side])}",
        instruction="" if access.span is None else texts.get(access.span, ""),
        span=access.span,
        object=access.memory[1],
        bytes=common.bytes,
        proxy=access.form.proxy,
        access="read" if access.form.kind == READ else "write",
    )


def _when(conflict: Conflict, study: LaunchStudy) -> str:
    """Where the later access is, in terms of the wait of its launch."""
    if conflict.later.placement.behind_wait != BEFORE:
        between = study.name(study.not_waiting(conflict.second, conflict.first))
        return f"behind its griddepcontrol.wait, but {between} does not wait for the launch before it"
    footprint = study.footprint(conflict.second)
    waits = footprint is not None and footprint.waits != BEFORE
    return "before its griddepcontrol.wait" if waits else "without a griddepcontrol.wait"


def _suggest_wait(conflict: Conflict, study: LaunchStudy) -> Fix:
    if conflict.later.placement.behind_wait != BEFORE:
        wait = say("{} in {} too", Code("griddepcontrol.wait"), study.name(conflict.second - 1))
        return advise("Execute {}, or launch it without the attribute", wait)
    span = conflict.later.span
    if span is None:
        return catalogue.get(CODE).fix
    place = say("{} before {}", Code("griddepcontrol.wait"), Site(span.line, span.column))
    return advise(
        "Execute {}, in its thread or in front of a barrier that leads to it; or launch without the attribute", place
    )
