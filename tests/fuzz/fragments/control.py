"""Fragments: branches, nested and divergent, locks and loops."""

from __future__ import annotations

from tests.fuzz.body import Body
from tests.fuzz.fragments.barriers import meet
from tests.fuzz.fragments.mbarriers import arriving, waiting
from tests.fuzz.fragments.plain import atomic, fence, load, shared, store


def branch(b: Body) -> None:
    """A branch on what was read."""
    r = b.result()
    b.lines.append(f"ld.relaxed.gpu.global.u32 {r}, [{b.random.choice('xy')}];")
    b.accesses += 1
    op, c = b.random.choice(("==", "!=", "<", ">")), b.random.randint(0, 2)
    if b.chance(0.5):
        p = b.predicate()
        name = {"==": "eq", "!=": "ne", "<": "lt", ">": "gt"}[op]
        b.lines.append(f"setp.{name}.u32 {p}, {r}, {c};")
        b.lines.append(
            f"@{b.random.choice(('', '!'))}{p} st.relaxed.gpu.global.u32 [{b.random.choice('xy')}], {b.value()};"
        )
        b.accesses += 1
        return
    b.lines.append(f"if ({r} {op} {c}) {{")
    b.random.choice((load, store, fence, store))(b)
    if b.chance(0.3):
        b.lines.append("} else {")
        b.random.choice((load, store))(b)
    b.lines.append("}")


def nested(b: Body) -> None:
    """A branch in a branch, or two in a row, now and then around an atomic, a fence or an access to shared memory."""
    inside = (load, store, store, atomic, fence) if b.chance(0.7) else (shared, load, store)
    for depth in range(b.random.randint(1, 2)):
        r = b.result()
        b.lines.append(f"ld.relaxed.gpu.global.u32 {r}, [{b.random.choice('xyz')}];")
        b.lines.append(f"if ({r} {b.random.choice(('==', '!=', '<'))} {b.random.randint(0, 2)}) {{")
        b.random.choice(inside)(b)
        if depth == 0 and b.chance(0.4):
            branch(b)
        if b.chance(0.4):
            b.lines.append("} else {")
            b.random.choice(inside)(b)
        b.lines.append("}")
        b.accesses += 1


def divided(b: Body) -> None:
    """A use of an mbarrier, a barrier or a group in one branch only, or in both."""
    r = b.result()
    b.lines.append(f"ld.relaxed.gpu.global.u32 {r}, [{b.random.choice('xy')}];")
    b.lines.append(f"if ({r} {b.random.choice(('==', '!='))} {b.random.randint(0, 1)}) {{")
    use = b.random.choice((arriving, arriving, waiting, meet, shared))
    use(b)
    if b.chance(0.5):
        b.lines.append("} else {")
        b.random.choice((use, store))(b)
    b.lines.append("}")
    b.accesses += 2


def locked(b: Body) -> None:
    """A lock taken by compare-and-swap in a loop, something done under it, and its release."""
    label, p, r = b.label(), b.predicate(), b.result()
    b.lines.append(f"{label}:")
    b.lines.append(f"atom.{b.random.choice(('acquire', 'acquire', 'relaxed'))}.gpu.global.cas.b32 {r}, [z], 0, 1;")
    b.lines.append(f"setp.ne.u32 {p}, {r}, 0;")
    b.lines.append(f"@{p} bra {label};")
    b.random.choice((load, store))(b, b.random.choice("xy"))
    if b.chance(0.8):
        b.say(f"st.{b.random.choice(('release', 'release', 'relaxed'))}.gpu.global.u32 [z], 0;")
    b.accesses += 2


def loop(b: Body) -> None:
    """A loop: a spin, a wait, or a few rounds with an effect."""
    place = b.random.choice("xy")
    sem = b.random.choice(("relaxed", "acquire"))
    form = b.random.choice(("await", "spin", "count", "for"))
    if form == "await":
        until = b.random.choice(("== 1", "!= 0", ">= 1"))
        b.lines.append(f"await ld.{sem}.{b.scope()}.global.u32 {b.result()}, [{place}] {until};")
    elif form == "for":
        i = b.random.choice("ij")
        b.lines.append(f"for {i} in 0..2 {{")
        b.lines.append(f"st.relaxed.gpu.global.u32 [{place}], {i} + 1;")
        b.lines.append("}")
        b.accesses += 1
    else:
        label, p, r = b.label(), b.predicate(), b.result()
        b.lines.append(f"{label}:")
        if form == "spin":
            b.lines.append(f"ld.{sem}.gpu.global.u32 {r}, [{place}];")
            b.lines.append(f"setp.eq.u32 {p}, {r}, 0;")
        else:
            b.lines.append(f"atom.{sem}.gpu.global.add.u32 {r}, [{place}], 1;")
            b.lines.append(f"setp.lt.u32 {p}, {r}, {b.random.randint(0, 1)};")
        b.lines.append(f"@{p} bra {label};")
    b.accesses += 2
