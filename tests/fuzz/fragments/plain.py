"""Fragments: loads, stores, atomics and fences of several strengths, scopes and widths, in global and shared memory."""

from __future__ import annotations

from tests.fuzz.body import Body


def load(b: Body, place: str = "") -> None:
    """A load of a global word."""
    place = place or b.random.choice(("x", "y", "x", "y", "z"))
    how = b.random.choices(("weak", "relaxed", "acquire", "volatile"), (4, 4, 3, 1))[0]
    qualifier = "" if how == "weak" else f".{how}" if how == "volatile" else f".{how}.{b.scope()}"
    b.say(f"ld{qualifier}.global.u32 {b.result()}, [{place}];")
    b.accesses += 1


def store(b: Body, place: str = "") -> None:
    """A store to a global word."""
    place = place or b.random.choice(("x", "y", "x", "y", "z"))
    how = b.random.choices(("weak", "relaxed", "release", "volatile"), (4, 4, 3, 1))[0]
    qualifier = "" if how == "weak" else f".{how}" if how == "volatile" else f".{how}.{b.scope()}"
    b.say(f"st{qualifier}.global.u32 [{place}], {b.value()};")
    b.accesses += 1


def atomic(b: Body) -> None:
    """An atomic or a reduction."""
    place = b.random.choice(("x", "y"))
    sem, scope = b.random.choice(("relaxed", "acquire", "release", "acq_rel")), b.scope()
    op = b.random.choice(("add", "exch", "cas", "max", "min", "and", "or", "xor", "red"))
    if op == "red":
        b.say(f"red.{b.random.choice(('relaxed', 'release'))}.{scope}.global.add.u32 [{place}], 1;")
    elif op == "cas":
        b.say(f"atom.{sem}.{scope}.global.cas.b32 {b.result()}, [{place}], {b.random.randint(0, 1)}, {b.value()};")
    else:
        kind = "b32" if op in ("exch", "and", "or", "xor") else "u32"
        b.say(f"atom.{sem}.{scope}.global.{op}.{kind} {b.result()}, [{place}], {b.value()};")
    b.accesses += 2


def fence(b: Body) -> None:
    """A fence of memory or of a proxy."""
    b.say(
        b.random.choice(
            (
                f"fence.sc.{b.scope()};",
                f"fence.acq_rel.{b.scope()};",
                f"fence.acq_rel.{b.scope()};",
                f"fence.release.{b.scope()};",
                f"fence.acquire.{b.scope()};",
                "membar.gl;",
                "fence.proxy.async;",
            )
        )
    )


def width(b: Body) -> None:
    """An access to a part of a 64-bit word."""
    bits = b.random.choice((8, 16, 32, 64))
    offset = b.random.randrange(0, 8, bits // 8)
    strong = b.random.random() < 0.4 and bits >= 16
    qualifier = f".relaxed.{b.scope()}" if strong else ""
    b.accesses += 2
    if b.chance(0.15):
        if b.chance(0.5):
            b.say(f"st.global.v2.u32 [w], {{{b.value()}, {b.value()}}};")
        else:
            b.say(f"ld.global.v2.u32 {{{b.result()}, {b.result()}}}, [w];")
    elif b.chance(0.5):
        b.say(f"st{qualifier}.global.u{bits} [w + {offset}], {b.random.randint(1, 255)};")
    elif bits == 64:
        b.say(f"ld{qualifier}.global.u64 %rd{b.registers}, [w + {offset}];")
        b.registers += 1
    else:
        if bits == 32:
            b.results.append(f"r{b.registers}")
        b.say(f"ld{qualifier}.global.u{bits} {'%rs' if bits < 32 else 'r'}{b.registers}, [w + {offset}];")
        b.registers += 1


def arithmetic(b: Body) -> None:
    """A computation on what was read."""
    if not b.results:
        b.lines.append(f"ld.acquire.gpu.global.u32 {b.result()}, [{b.random.choice('xy')}];")
        b.accesses += 1
    a = b.random.choice(b.results)
    op = b.random.choice(("add.u32", "sub.u32", "xor.b32", "mul.lo.u32", "min.u32", "shl.b32", "max.s32", "and.b32"))
    other = b.random.choice([*b.results, "1", "2"])
    b.lines.append(f"{op} {b.result()}, {a}, {other};")


def shared(b: Body, words: int = 1) -> None:
    """A generic access to shared memory."""
    index = b.random.randrange(words)
    if b.chance(0.5):
        b.say(f"ld.shared.u32 {b.result()}, [s[{index}]];")
    else:
        b.say(f"st.shared.u32 [s[{index}]], {b.value()};")
    b.accesses += 1


def remote(b: Body) -> None:
    """An access to the shared memory of another CTA of the cluster."""
    rank = b.random.randint(0, 1)
    if b.chance(0.5):
        b.say(f"st.shared::cluster.u32 [s[0]@{rank}], {b.value()};")
    else:
        b.say(f"ld.shared::cluster.u32 {b.result()}, [s[0]@{rank}];")
    b.accesses += 1
