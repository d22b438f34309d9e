"""Generator of random programs of two threads that access copies by a multimem address and by their own addresses."""

from __future__ import annotations

from random import Random

SCOPES = ("sys", "sys", "sys", "gpu")


def multimem_program(random: Random) -> str:
    """A program of two threads, on one GPU or on two, that one may hand over to the other by a flag."""
    lines = ["PTX multimem", "{ x = 0; y = 0; d = 0; f = 0; m @ multimem aliases x, y; }"]
    handover = random.random() < 0.5
    scope, apart = random.choice(SCOPES), random.choice((0, 1, 1))
    for k, signal in enumerate(("st.release.sys.u32 [f], 1;", f"await ld.acquire.{scope}.u32 r9, [f] == 1;")):
        body = [_statement(random, register) for register in range(random.randint(1, 3))]
        if handover:
            body.insert(random.randint(0, len(body)), signal)
        lines += [f"P{k}@cta {k}, gpu {k * apart} {{", *(f"  {line}" for line in body), "}"]
    return "\n".join((*lines, ""))


def _statement(random: Random, register: int) -> str:
    scope, place = random.choice(SCOPES), random.choice(("m", "m", "m", "x", "y", "d"))
    if random.random() < 0.25:
        return random.choice(("fence.proxy.alias;", "fence.proxy.alias;", f"fence.acq_rel.{scope};"))
    many = "multimem." if place == "m" else ""
    match random.choice(("load", "store", "reduction")):
        case "load":
            order = random.choice(("weak", f"relaxed.{scope}", f"acquire.{scope}"))
            form = f"multimem.ld_reduce.{order}.add" if many else f"ld.{order}"
            return f"{form}.u32 r{register}, [{place}];"
        case "store":
            order = random.choice(("weak", f"relaxed.{scope}", f"release.{scope}"))
            return f"{many}st.{order}.u32 [{place}], {random.randint(1, 2)};"
    return f"{many}red.{random.choice(('relaxed', 'release'))}.{scope}.add.u32 [{place}], {random.randint(1, 2)};"
