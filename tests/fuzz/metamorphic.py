"""Metamorphic testing: pairs of programs with related answers, by transformations of a program.

Who executes what is the same when roles change places, when one role of two threads is two roles, when names change,
when an address goes through a register, and when a thread without effect runs in a CTA of its own: then the answer is
the same. A fence more, or an access that
is stronger or of a wider scope, leaves fewer executions and orders more: findings and states may go, none may come.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from random import Random

from mcheck.answers.result import State
from mcheck.base.verdicts import Verdict
from tests.fuzz.differential import EngineAnswer
from tests.fuzz.draft import Draft, Role, units


@dataclass(frozen=True, slots=True)
class Pair:
    """Two programs with related answers. ``fewer``: the second may say less. ``labels`` translates its terms."""

    first: Draft
    second: Draft
    fewer: bool = False
    labels: Mapping[str, str] | None = None


Relation = Callable[[Random, Draft], Pair | None]


def permuted(random: Random, draft: Draft) -> Pair | None:
    """Permute the roles."""
    roles = list(draft.roles)
    random.shuffle(roles)
    return Pair(draft, replace(draft, roles=tuple(roles))) if tuple(roles) != draft.roles else None


def split(random: Random, draft: Draft) -> Pair | None:
    """A role of two warps of one lane each, and the two of them as roles of their own."""
    k = random.randrange(len(draft.roles))
    role = draft.roles[k]
    if "warp" in role.place:
        return None
    both = Role(role.name, f"{role.place}, warp 20..22, lane 0", role.lines)
    one = Role(role.name, f"{role.place}, warp 20, lane 0", role.lines)
    other = Role("Q", f"{role.place}, warp 21, lane 0", role.lines)
    before, after = draft.roles[:k], draft.roles[k + 1 :]
    first = replace(draft, roles=(*before, both, *after))
    parts = [one, other] if random.random() < 0.5 else [other, one]
    return Pair(first, replace(draft, roles=(*before, *parts, *after)))


def idle(random: Random, draft: Draft) -> Pair | None:
    """A thread more, in a CTA of its own, that reads what nobody writes."""
    clustered = any("cluster" in role.place for role in draft.roles)
    place = "cluster 7, cta 0" if clustered else "cta 7"
    lines = random.choice(
        (
            ("mov.u32 r0, 1;",),
            ("ld.global.u32 r0, [idle];",),
            ("fence.acq_rel.gpu;", "add.u32 r1, r0, 2;"),
            ("bar.sync 0;",),
        )
    )
    objects = (*draft.objects, ".global .u32 idle = 0;")
    roles = (
        (*draft.roles, Role("Idle", place, lines))
        if random.random() < 0.5
        else (Role("Idle", place, lines), *draft.roles)
    )
    return Pair(draft, replace(draft, roles=roles, objects=objects))


def fenced(random: Random, draft: Draft) -> Pair | None:
    """Insert a fence."""
    k = random.randrange(len(draft.roles))
    lines = draft.roles[k].lines
    fence = random.choice(
        ("fence.sc.sys;", "fence.acq_rel.sys;", "fence.acq_rel.gpu;", "fence.proxy.async;", "fence.sc.cta;")
    )
    at = random.choice([0, len(lines), *(a for a, _ in units(lines))])
    return Pair(draft, draft.with_lines(k, (*lines[:at], fence, *lines[at:])), fewer=True)


STRONGER: tuple[tuple[str, str], ...] = (
    (r"^((?:@!?%p\d+ |await )?ld)(\.global|\.shared|\.shared::cluster)\.u(16|32|64) ", r"\1.relaxed.sys\2.u\3 "),
    (r"^((?:@!?%p\d+ )?st)(\.global|\.shared|\.shared::cluster)\.u(16|32|64) ", r"\1.relaxed.sys\2.u\3 "),
    (r"^((?:@!?%p\d+ |await )?ld)\.relaxed\.", r"\1.acquire."),
    (r"^((?:@!?%p\d+ )?st|red)\.relaxed\.", r"\1.release."),
    (r"^(atom)\.(?:relaxed|acquire|release)\.", r"\1.acq_rel."),
    (r"^(ld|await ld|st|atom|red)(\.\w+)\.(?:cta|cluster|gpu)\b", r"\1\2.sys"),
    (r"^(fence\.(?:sc|acq_rel|acquire|release))\.(?:cta|cluster|gpu);", r"\1.sys;"),
    (r"^fence\.(?:acq_rel|acquire|release)\.", "fence.sc."),
    (r"^(mbarrier\.arrive(?:_drop)?(?:\.expect_tx)?)\.relaxed\.", r"\1.release."),
    (r"^((?:await )?mbarrier\.(?:try|test)_wait(?:\.parity)?)\.relaxed\.", r"\1.acquire."),
    (r"^(mbarrier\.arrive(?:_drop)?(?:\.expect_tx)?\.\w+)\.cta\.", r"\1.cluster."),
    (r"^((?:await )?mbarrier\.(?:try|test)_wait(?:\.parity)?\.\w+)\.cta\.", r"\1.cluster."),
    (r"^barrier\.cluster\.arrive\.relaxed", "barrier.cluster.arrive.release"),
    (r"^fence\.proxy\.async\.(?:global|shared::cta|shared::cluster);", "fence.proxy.async;"),
    (r"wait_group\.read", "wait_group"),
)
"""An instruction, and a stronger one."""


def strengthened(random: Random, draft: Draft) -> Pair | None:
    """Strengthen an instruction or widen its scope."""
    found = [
        (k, n, stronger)
        for k, role in enumerate(draft.roles)
        for n, line in enumerate(role.lines)
        for pattern, replacement in STRONGER
        if (stronger := re.sub(pattern, replacement, line)) != line
    ]
    if not found:
        return None
    k, n, stronger = random.choice(found)
    lines = draft.roles[k].lines
    return Pair(draft, draft.with_lines(k, (*lines[:n], stronger, *lines[n + 1 :])), fewer=True)


def renamed(random: Random, draft: Draft) -> Pair | None:
    """Rename registers, objects, labels and roles."""
    objects = [m[1] for text in draft.objects if (m := re.search(r"^\.\w+ (?:\.align \d+ )?\.\w+ (\w+)", text))]
    if len(objects) != len(draft.objects):  # the dialect's declarations are not rewritten
        return None
    names = {name: f"{name}_v" for name in objects} | {role.name: f"{role.name}_t" for role in draft.roles}

    def other(text: str) -> str:
        text = re.sub(r"(?<![\w.%:])([A-Za-z_]\w*)\b(?!::)", lambda m: names.get(m[1], m[1]), text)
        text = re.sub(r"(?<![\w.:])(%?)r(\d+)\b", lambda m: f"{m[1]}r{int(m[2]) + 40}", text)
        text = re.sub(r"%(p|rd|rs|f)(\d+)\b", lambda m: f"%{m[1]}{int(m[2]) + 40}", text)
        return re.sub(r"(?<![\w.])L(\d+)\b", r"M\1", text)

    def term(text: str) -> str:
        role, colon, register = text.partition(":")
        return f"{names.get(role, role)}:{other(register)}" if colon else other(text)

    condition = re.sub(r"\b(\w+):(r\d+)", lambda m: term(m[0]), draft.condition)
    for name in objects:
        condition = re.sub(rf"(?<![\w:]){name}\b(?!:)", names[name], condition)
    shown = tuple(term(t) for t in draft.shown)
    second = Draft(
        draft.name,
        draft.model,
        tuple(other(text) for text in draft.objects),
        tuple(Role(names[role.name], role.place, tuple(map(other, role.lines))) for role in draft.roles),
        shown,
        condition,
    )
    labels = {names[name]: name for name in objects} | dict(zip(shown, draft.shown, strict=True))
    return Pair(draft, second, labels=labels)


DECLARED = re.compile(r"^\.(shared|global) (?:\.align \d+ )?\.\w+ (\w+)")
NAMED = re.compile(r"\[(\w+)(?=\]| \+ \d+\])")


def pointed(random: Random, draft: Draft) -> Pair | None:
    """An address by a register: of 32 bits, as compilers have them for shared memory, or of 64."""
    spaces = {m[2]: m[1] for text in draft.objects if (m := DECLARED.search(text))}
    found = [
        (k, n, m)
        for k, role in enumerate(draft.roles)
        for n, line in enumerate(role.lines)
        for m in NAMED.finditer(line)
        if m[1] in spaces
    ]
    if not found:
        return None
    k, n, place = random.choice(found)
    wide = spaces[place[1]] == "global" or random.random() < 0.3
    kind, register = ("u64", "%rd90") if wide else ("u32", "%r90")
    lines = draft.roles[k].lines
    by = lines[n][: place.start(1)] + register + lines[n][place.end(1) :]
    return Pair(draft, draft.with_lines(k, (*lines[:n], f"mov.{kind} {register}, {place[1]};", by, *lines[n + 1 :])))


RELATIONS: Mapping[str, Relation] = {
    "permuted": permuted,
    "split": split,
    "idle": idle,
    "fenced": fenced,
    "strengthened": strengthened,
    "renamed": renamed,
    "pointed": pointed,
}


def violations(pair: Pair, first: EngineAnswer, second: EngineAnswer) -> list[str]:
    """In what an engine's answers about the two programs are not related as they should be."""
    if "crash" in (first.verdict, second.verdict):
        return [f"crash: {h.reason}" for h in (first, second) if h.verdict == "crash"]
    found = []
    states = None if second.states is None else frozenset(_translated(s, pair.labels) for s in second.states)
    if pair.fewer:
        if first.kinds is not None and second.kinds is not None and not second.kinds <= first.kinds:
            found.append(f"kinds: {', '.join(sorted(second.kinds - first.kinds))} came with it")
        if first.states is not None and states is not None and not states <= first.states:
            found.append(f"states: {sorted(states - first.states, key=str)} came with it")
        return found
    if first.codes is not None and second.codes is not None and first.codes != second.codes:
        found.append(f"codes: {sorted(first.codes)} against {sorted(second.codes)}")
    if Verdict.UNKNOWN not in (first.verdict, second.verdict) and first.verdict != second.verdict:
        found.append(f"verdict: {first.verdict} against {second.verdict}")
    if first.states is not None and states is not None and first.states != states:
        found.append(f"states: {sorted(first.states ^ states, key=str)} only on one side")
    return found


def _translated(state: State, labels: Mapping[str, str] | None) -> State:
    return state if labels is None else tuple((labels.get(label, label), value) for label, value in state)
