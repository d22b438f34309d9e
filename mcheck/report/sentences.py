"""A finding in one sentence of plain words, and what is said at each of its places."""

from __future__ import annotations

import re

from mcheck.answers.result import NOT_UNDEFINED
from mcheck.findings.finding import Access, Finding
from mcheck.findings.groups import reads_before_first_fill
from mcheck.ir.memory import TENSOR_MEMORY
from mcheck.report.deadlocks import describe_deadlock

_AT_ITS_CTA = re.compile(r"@\d+(?=\b|$)")
_LONG_NAME = re.compile(r"(?<![\w$.])([A-Za-z_$][\w$.]*(?:\[\d+\])*) \(\w+@\d+[^)]*\)")
"""An object with its address behind it: ``full[0] (memory@1 + 0x6000, stage 0 of 3)``."""
_PLAIN_NAME = re.compile(r"(?<![`\w$])([A-Za-z_$][\w$.]*(?:\[\d+\])*)@(\d+)\b(?!`)")
_ACTOR = re.compile(r"^(?P<who>[\w.]+(?:\[[^\]]*\])?): (?P<verb>(?:uses|exits|may|reads|copies|arrives|ends)\b)?")
_TENSOR_CORE = re.compile(r"tcgen05\.(?:alloc|cp|mma|st|ld|shift)\b")
_GUARD = re.compile(r"^(?:@!?%?[\w$]+\s+|await\s+)*")
_SCOPES = re.compile(r"'[^']+' at line \d+ has scope .*")
_OPERATIONS = (
    ("cp.async.bulk.prefetch", "a prefetch"),
    ("cp.async.bulk.tensor", "a tensor copy"),
    ("cp.reduce.async.bulk", "a bulk reduction"),
    ("cp.async.bulk", "a bulk copy"),
    ("cp.async.mbarrier", ""),
    ("cp.async", "a cp.async"),
    ("wgmma.mma_async", "a wgmma"),
    ("st.async", "an st.async"),
    ("red.async", "a red.async"),
    ("st.bulk", "an st.bulk"),
)
"""Asynchronous operations by the beginning of their names, and what they are called."""


def sentence(finding: Finding) -> str:
    """The finding in one sentence; that of the engine where there is no better one."""
    ends = finding.accesses
    if finding.kind == "deadlock" and (cycle := describe_deadlock(finding)):
        return cycle
    if reads_before_first_fill(finding):
        copy = operation(ends[1]).partition(" ")[2] or "copy"
        return f"{object_name(ends[0])} is read without waiting for the {copy} that fills it"
    if len(ends) == 2 and ends[0].object and ends[1].object and finding.kind == "race":
        said = _race(finding.code, ends[0], ends[1])
        if said:
            scopes = _SCOPES.search(finding.message)
            return f"{said}: {scopes[0]}" if scopes is not None else said
    return plain_names(_ACTOR.sub(_actor, finding.message))


def _actor(found: re.Match[str]) -> str:
    """The thread of a message if it is the subject of a verb; otherwise the message does without."""
    return f"{found['who']} {found['verb']}" if found["verb"] else ""


def plain_names(text: str) -> str:
    """The text with objects by their names alone, in backticks."""
    return _PLAIN_NAME.sub(_plain_name, _LONG_NAME.sub(r"`\1`", text))


def _plain_name(found: re.Match[str]) -> str:
    return f"`{found[1]}`" if found[2] == "0" else f"`{found[1]}` of CTA {found[2]}"


def object_name(access: Access) -> str:
    """The name of the object of an access, in backticks."""
    return TENSOR_MEMORY if access.object.startswith(TENSOR_MEMORY) else f"`{_AT_ITS_CTA.sub('', access.object)}`"


def operation(access: Access) -> str:
    """What an asynchronous operation is called; empty for other accesses."""
    text = _GUARD.sub("", access.instruction)
    if found := _TENSOR_CORE.match(text):
        return f"a {found[0]}"
    return next((name for begin, name in _OPERATIONS if text.startswith(begin)), "")


# --- races --------------------------------------------------------------------------------------------------------


def _race(code: str, first: Access, second: Access) -> str:
    name = object_name(first)
    one, other = operation(first), operation(second)
    match code:
        case "RACE001":
            return f"{name} is {_both(first, second)}, and nothing orders the two"
        case "RACE002":
            return f"{name} is {_both(first, second)} in different sizes, and nothing orders the two"
        case "RACE003":
            return _in_flight(name, first, second, one, other)
        case "RACE004" if second.access == "read":
            return f"{other or 'the async proxy'} may miss what was just written to {name}: no proxy fence between them"
        case "RACE004":
            return f"{name} is written by a thread, then by {other or 'a copy'}, with no proxy fence between them"
        case "RACE005":
            return f"{name} is handed to another CTA with a proxy fence on one side only"
        case "RACE006":
            return f"{other or 'a copy'} may overwrite {name} before it has been read: no proxy fence between them"
        case "RACE007":
            return f"{other or 'the async proxy'} may miss what cp.async brought to {name}: no proxy fence between them"
        case "RACE008":
            return f"{name} passes between copies of two CTAs with no proxy fence between them"
        case "RACE009":
            return f"{other or 'a copy'} may use the old tensor map {name}: no tensormap fences between them"
        case "RACE010":
            return f"{name} is handed over with too narrow a scope"
    return ""


def _both(first: Access, second: Access) -> str:
    if first.access == second.access == "write":
        return "written twice"
    return "read and written" if first.access == "read" else "written and read"


def _in_flight(name: str, first: Access, second: Access, one: str, other: str) -> str:
    """The sentence of RACE003: an access while an asynchronous operation is in flight."""
    if one and other and first.access == second.access == "write":
        return f"{name} is written by {other} while {one} may still be writing it"
    if one:
        done = "read" if second.access == "read" else "overwritten"
        by = f" by {other}" if other else ""
        return f"{name} is {done}{by} while {one} may still be {_doing(first)} it"
    if not other:
        return ""
    if first.access == "read":
        return f"{other} may overwrite {name} while it is still being read"
    if second.access == "read":
        return f"{other} may read {name} before it has been written"
    return f"{other} may write {name} before an earlier write to it is over"


def _doing(access: Access) -> str:
    return "writing" if access.access == "write" else "reading"


def value_use(finding: Finding) -> str:
    """What becomes of the value of a load, if it is not used for certain; empty if it is."""
    load = next((access for access in finding.accesses if access.value), None)
    if load is None:
        return ""
    if load.value == "chosen":
        return "the value that is read is used only where a `selp` takes it: the compiler may have moved the load"
    harmless = finding.code in NOT_UNDEFINED
    return "nothing uses the value that is read" + (", so that this race changes no result" if harmless else "")


# --- labels -------------------------------------------------------------------------------------------------------


def label(finding: Finding, k: int) -> str:
    """What is said at the place of access ``k``."""
    access = finding.accesses[k]
    who = access.thread
    if access.action not in ("read", "write"):
        return f"{access.action} by {who}" + (f" on {_barrier_name(finding, access)}" if access.object else "")
    name = operation(access)
    if finding.kind != "race" or not access.object:
        return f"{name} by {who}" if name else f"executed by {who}"
    where = access.place.replace("@0[", "[")
    does = "reads" if access.access == "read" else "writes"
    if name:
        return f"{name} of {who} starts here, {does} {where}"
    if k and access.access == "read" and finding.code == "RACE003" and operation(finding.accesses[0]):
        return f"{who} may read old data of {where}"
    return f"{who} {does} {where}"


def _barrier_name(finding: Finding, access: Access) -> str:
    """An mbarrier by the name that the message gives it; that of the object it is in has no more to say."""
    start = f" + {access.bytes[0]:#x}" if access.bytes[0] else ""
    named = re.search(rf"([A-Za-z_$][\w$.]*(?:\[\d+\])*) \({re.escape(access.object + start)}[,)]", finding.message)
    return f"`{named[1]}`" if named is not None else object_name(access)
