"""A finding in one sentence of plain words, and what is said at each of its places."""

from __future__ import annotations

import re
from itertools import zip_longest

from mcheck.answers.result import NOT_UNDEFINED
from mcheck.base.phrase import Actor, Lack, Part, Phrase, Thing, say, things
from mcheck.base.records import replace
from mcheck.findings.finding import Access, Finding
from mcheck.findings.groups import overwritten_while_read, reads_before_first_fill
from mcheck.ir.memory import TENSOR_MEMORY
from mcheck.report.deadlocks import describe_deadlock

_VERBS = ("accesses", "allocates", "arrives", "copies", "ends", "executes", "exits", "frees", "may", "reads", "uses")
"""The first words of messages whose subject is the thread."""
_TENSOR_CORE = re.compile(r"tcgen05\.(?:alloc|cp|mma|st|ld|shift)\b")
_GUARD = re.compile(r"^(?:@!?%?[\w$]+\s+|await\s+)*")
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


def sentence(finding: Finding) -> Phrase:
    """The finding in one sentence; that of the engine where there is no better one."""
    ends = finding.accesses
    if finding.kind == "deadlock" and (cycle := describe_deadlock(finding)):
        return _with_lack(cycle, finding)
    if reads_before_first_fill(finding):
        copy = operation(ends[1]).partition(" ")[2] or "copy"
        said = f"{object_name(ends[0])} is read without waiting for the {copy} that fills it"
        return _with_lack((said,), finding)
    if len(ends) == 2 and ends[0].object and ends[1].object and finding.kind == "race":
        said = _overwritten(finding) or _race(finding.code, ends[0], ends[1])
        if said:
            return _with_lack((said,), finding)
    return tuple(_actor(part, behind) for part, behind in zip_longest(finding.said, finding.said[1:], fillvalue=""))


def _with_lack(said: Phrase, finding: Finding) -> Phrase:
    """A sentence with what is wrong between the accesses, or why a wait does not end, if that is known."""
    lack = next((part for part in finding.said if isinstance(part, Lack)), None)
    return say("{}: {}", said, lack.clause) if lack is not None else said


def _actor(part: Part, behind: Part) -> Part:
    """The thread of a message if it is the subject of a verb; otherwise the message does without."""
    if not isinstance(part, Actor):
        return part
    acts = isinstance(behind, str) and behind.partition(" ")[0] in _VERBS
    return f"{part.thread} " if acts else ""


def thing_name(thing: Thing) -> str:
    """The name alone, in backticks, and whose it is of several."""
    if thing.name.startswith("0x"):
        return thing.name
    of = f" of CTA {thing.cta}" if thing.cta and not thing.place else ""
    return f"{thing.called}`{thing.name}`{thing.part}{of}"


def object_name(access: Access) -> str:
    """The name of the object of an access, in backticks."""
    return TENSOR_MEMORY if access.object.startswith(TENSOR_MEMORY) else f"`{access.object.partition('@')[0]}`"


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


def _overwritten(finding: Finding) -> str:
    """The sentence of RACE003 for a read of bytes into which a copy of a later round is in flight; else empty."""
    copy, read = finding.accesses
    name = operation(copy)
    if finding.code != "RACE003" or not name or read.access != "read" or not overwritten_while_read(finding):
        return ""
    later = f"a later {name.partition(' ')[2]}"
    return f"{object_name(copy)} is still being read while {later} may already be writing it"


def _both(first: Access, second: Access) -> str:
    if first.access == second.access == "write":
        return "written twice"
    return "read and written" if first.access == "read" else "written and read"


def _in_flight(name: str, first: Access, second: Access, one: str, other: str) -> str:
    """The sentence of RACE003: an access while an asynchronous operation is in flight."""
    if _frees(first) or _frees(second):
        return f"{name} may be freed while {one or other or 'an operation'} still uses it"
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


def _frees(access: Access) -> bool:
    return access.instruction.startswith("tcgen05.dealloc")


def _doing(access: Access) -> str:
    return "writing" if access.access == "write" else "reading"


def value_use(finding: Finding) -> str:
    """What becomes of the value of a load, if it is not used for certain; empty if it is."""
    load = next((access for access in finding.accesses if access.value), None)
    if load is None:
        return ""
    if load.value == "chosen":
        return "the value that is read is used only where a `selp` takes it: the compiler may have moved the load"
    harmless = ", so that this race changes no result" if finding.code in NOT_UNDEFINED else ""
    if load.value == "left":
        return f"{load.thread} stores nothing made of the value that it reads{harmless}"
    return f"nothing uses the value that is read{harmless}"


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
    does = "frees" if _frees(access) else "reads" if access.access == "read" else "writes"
    if name:
        return f"{name} of {who} starts here, {does} {where}"
    if k and access.access == "read" and finding.code == "RACE003" and operation(finding.accesses[0]):
        what = "data of the later copy in" if overwritten_while_read(finding) else "old data of"
        return f"{who} may read {what} {where}"
    if k == 0 and reads_before_first_fill(finding):
        return f"{who} may read what was in {where} before the copy"
    return f"{who} {does} {where}"


def _barrier_name(finding: Finding, access: Access) -> str:
    """An mbarrier by the name that the message gives it; that of the object it is in has no more to say."""
    place = access.object + (f" + {access.bytes[0]:#x}" if access.bytes[0] else "")
    named = next((t for t in things(finding.said) if place == (t.place or str(replace(t, stage=None, role="")))), None)
    return thing_name(named) if named is not None else object_name(access)
