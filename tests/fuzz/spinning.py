"""Generator of spin loops with several reads per iteration, and the threads that end them.

A round that finds nothing has read all the same: what it read weakly may race, what it read last may be older than what
it read before. So a loop reads two or three words, weakly or not, in some order, with a way out in the middle now and
then; what is read behind it is right where the words were written behind the data, and read by an acquire.
"""

from __future__ import annotations

from random import Random

from tests.fuzz.conditions import condition
from tests.fuzz.draft import MODELS, Draft, Role

FLAGS = ("x", "y")
DATA = "d"


def spinning(random: Random) -> Draft:
    """One or two threads that go round, and one or two that write what they look for, most of them with ``care``."""
    together = random.random() < 0.5
    care = random.random() < 0.7
    loops = random.choices((1, 2), (3, 1))[0]
    writers = 1 if loops == 2 else random.choices((1, 2), (3, 1))[0]
    answered = loops == writers == 1 and random.random() < 0.3
    roles: list[tuple[str, ...]] = [
        _writer(random, k, writers, together, answered=answered, care=care) for k in range(writers)
    ]
    shown: list[str] = []
    for k in range(writers, writers + loops):
        lines, registers = _reader(random, together, answered=answered, care=care, last=k)
        shown += [f"P{k}:{r}" for r in registers]
        roles.append(lines)
    objects = tuple(f".global .u32 {name} = 0;" for name in (*FLAGS, DATA, "z"))
    places = ["cta 0" if together else f"cta {k}" for k in range(len(roles))]
    made = tuple(Role(f"P{k}", place, lines) for k, (place, lines) in enumerate(zip(places, roles, strict=True)))
    return Draft("spinning", random.choice(MODELS), objects, made, tuple(shown[:6]), condition(random, shown))


def _scope(random: Random, together: bool, *, care: bool) -> str:
    return random.choices(("cta", "gpu", "sys"), (3 if together else 0 if care else 1, 6, 1))[0]


def _writer(
    random: Random, number: int, writers: int, together: bool, *, answered: bool, care: bool
) -> tuple[str, ...]:
    """Writes the data and then its flags, all of them or its share."""
    lines = [f"st.global.u32 [{DATA}], {number + 1};"] if number == 0 or random.random() < 0.3 else []
    if random.random() < 0.3:
        lines.append(f"fence.acq_rel.{_scope(random, together, care=care)};")
    flags = [random.sample(FLAGS, 2), [FLAGS[0]], [FLAGS[1]]][0 if writers == 1 else 1 + number]
    for flag in flags:
        sem = random.choices(("release", "relaxed"), (4, 0 if care else 1))[0]
        scope = _scope(random, together, care=care)
        if random.random() < 0.2:
            lines.append(f"red.{sem}.{scope}.global.add.u32 [{flag}], 1;")
        else:
            lines.append(f"st.{sem}.{scope}.global.u32 [{flag}], 1;")
    if answered:
        lines.append("await ld.acquire.gpu.global.u32 r0, [z] == 1;")
        lines.append(f"st.global.u32 [{DATA}], 3;")
    return tuple(lines)


def _reader(
    random: Random, together: bool, *, answered: bool, care: bool, last: int
) -> tuple[tuple[str, ...], list[str]]:
    """Goes round until the flags, or one of them, are there; a counted loop goes round twice whatever it finds."""
    counted = random.random() < 0.2
    looked = [*random.sample(FLAGS, 2), *([DATA] if random.random() < (0.1 if care else 0.4) else [])]
    random.shuffle(looked)
    registers = [f"r{k}" for k in range(len(looked))]
    body: list[str] = []
    tests: list[str] = []
    for flag, r in zip(looked, registers, strict=True):
        weak = flag == DATA or (not care and random.random() < 0.25)
        sem = f"{random.choices(('acquire', 'relaxed'), (3, 1))[0]}.{_scope(random, together, care=care)}."
        body.append(f"ld.{'' if weak else sem}global.u32 {r}, [{flag}];")
        if flag != DATA:
            tests.append(r)
            if random.random() < 0.15 and not counted:
                body += [f"setp.eq.u32 %p9, {r}, 1;", "@%p9 bra out;"]
        elif random.random() < 0.4:  # the data are looked at in some rounds only
            body[-1] = f"@%p8 {body[-1]}"
            body.insert(len(body) - 1, f"setp.eq.u32 %p8, {random.choice(tests or ['0'])}, 1;")
    if counted:
        lines = ["for i in 0..2 {", *body, "}"]
    else:
        needed = random.choice((tests, tests, tests[:1], tests[-1:]))
        lines = ["again:", *body, f"setp.ne.u32 %p0, {needed[0]}, 1;"]
        if len(needed) > 1:
            lines += [f"setp.ne.u32 %p1, {needed[1]}, 1;", f"{random.choice(('or', 'or', 'and'))}.pred %p0, %p0, %p1;"]
        lines += ["@%p0 bra again;", "out:"]
    if random.random() < 0.3:
        lines.append(f"fence.acq_rel.{_scope(random, together, care=care)};")
    behind = f"r{len(looked)}"
    lines.append(random.choice((f"ld.global.u32 {behind}, [{DATA}];", f"st.global.u32 [{DATA}], {last + 4};")))
    if lines[-1].startswith("ld"):
        registers.append(behind)
    if answered:
        lines.append(f"st.release.{_scope(random, together, care=care)}.global.u32 [z], 1;")
    return tuple(lines), registers
