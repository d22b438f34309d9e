"""Generator of mbarrier-only programs: arrivals, expect-tx, signals, waits, and plain data.

Every thread does its share of each phase: the shares add up to what the mbarrier was initialised with, and the bytes
announced to the bytes signalled. So a program is right until it is damaged.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from tests.fuzz.conditions import condition
from tests.fuzz.draft import MODELS, Draft, Role

OP = "mbarrier."


@dataclass(slots=True)
class Thread:
    """What one thread executes."""

    lines: list[str] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    registers: int = 0
    open: int = 0
    states: dict[tuple[int, int], str] = field(default_factory=dict)

    def register(self) -> int:
        """The number of a fresh register."""
        self.registers += 1
        return self.registers


def mbarrier_only(random: Random) -> Draft:
    """Threads of one CTA around one or two mbarriers, over one or two phases."""
    count = random.choices((2, 3), (3, 2))[0]
    bars = random.choices((1, 2), (4, 1))[0]
    phases = random.choices((1, 2, 3), (6, 4, 1))[0] if bars == 1 and count == 2 else random.choices((1, 2), (4, 1))[0]
    threads = [Thread() for _ in range(count)]
    arrivals = [random.choices((1, 2, 3), (4, 4, 1))[0] for _ in range(bars)]
    data = random.random() < 0.7
    for k in range(bars):
        threads[0].lines.append(f"{OP}init.shared::cta.b64 [b{k}], {arrivals[k]};")
    for t in threads:
        t.lines.append("bar.sync 0;")
    for phase in range(phases):
        for k in range(bars):
            _phase(random, threads, k, phase, arrivals, data=data, last=phase == phases - 1)
    if random.random() < 0.12:
        _end_of_life(random, threads)
    roles = []
    for n, t in enumerate(threads):
        roles.append(Role(f"P{n}", "cta 0", (*t.lines, *["}"] * t.open)))
    objects = [f".shared .align 8 .b64 b{k};" for k in range(bars)]
    if data:
        objects.append(".shared .u32 x;")
    shown = [f"P{n}:{r}" for n, t in enumerate(threads) for r in t.results][:6]
    asked = condition(random, shown) if shown else ""
    return Draft("mbarriers", random.choice(MODELS), tuple(objects), tuple(roles), tuple(shown), asked)


def _phase(
    random: Random, threads: list[Thread], bar: int, phase: int, arrivals: list[int], *, data: bool, last: bool
) -> None:
    """One phase: who arrives how often, who announces and signals bytes, who waits and how."""
    left = arrivals[bar]
    shares = [0] * len(threads)
    while left:
        shares[random.randrange(len(threads))] += 1
        left -= 1
    writer = random.randrange(len(threads)) if data and random.random() < 0.6 else None
    signals = random.choices((0, 1, 2), (5, 3, 1))[0]
    announcing = [n for n, share in enumerate(shares) if share]
    announced = random.choice(announcing)
    signalling = [random.randrange(len(threads)) for _ in range(signals)]
    dropped = 0
    for n, t in enumerate(threads):
        if n == writer and shares[n]:
            t.lines.append(f"st.shared.u32 [x], {random.randint(1, 3)};")
        own = [(_signal(bar))] * signalling.count(n)
        expecting = 16 * signals if n == announced else 0
        body, drops = _arrivals(
            random, t, bar, phase, shares[n], expecting, may_drop=arrivals[bar] > 1 + dropped and not last
        )
        dropped += drops
        for line in own:
            body.insert(random.randint(0, len(body)), line)
        t.lines += body
        for p in range(phase + 1):
            if (p == phase and random.random() < 0.8) or (p < phase and random.random() < 0.05):
                _wait(random, t, bar, p, last=last and n != announced)
                if data and n != writer and p == phase and random.random() < 0.6:
                    t.results.append(f"r{t.register()}")
                    t.lines.append(f"ld.shared.u32 {t.results[-1]}, [x];")
    arrivals[bar] -= dropped


def _signal(bar: int) -> str:
    return f"{OP}complete_tx.relaxed.cta.shared::cta.b64 [b{bar}], 16;"


def _arrivals(
    random: Random, t: Thread, bar: int, phase: int, share: int, expecting: int, *, may_drop: bool
) -> tuple[list[str], int]:
    """The statements of one thread's share, and by how many arrivals the later phases are fewer."""
    place = f"[b{bar}]"
    lines: list[str] = []
    if expecting and (not share or random.random() < 0.4):
        lines.append(f"{OP}expect_tx.relaxed.cta.shared::cta.b64 {place}, {expecting};")
        expecting = 0
    dropped = 0
    while share:
        sem = random.choice(("", "", "", ".release.cta", ".relaxed.cta", ".release.cluster"))
        state = "_"
        if random.random() < 0.25:
            state = f"%rd{t.register()}"
            t.states[bar, phase] = state
        if expecting:
            lines.append(f"{OP}arrive.expect_tx{sem}.shared::cta.b64 {state}, {place}, {expecting};")
            expecting = 0
            share -= 1
        elif share > 1 and random.random() < 0.4:
            if random.random() < 0.5:
                lines.append(f"{OP}arrive{sem}.shared::cta.b64 {state}, {place}, 2;")
                share -= 2
            else:
                partial = f"%rd{t.register()}"
                lines.append(f"{OP}arrive.noComplete.shared::cta.b64 {partial}, {place}, 1;")
                share -= 1
                if random.random() < 0.5:
                    t.results.append(f"r{t.register()}")
                    lines.append(f"{OP}pending_count.b64 {t.results[-1]}, {partial};")
        elif may_drop and not dropped and random.random() < 0.3:
            lines.append(f"{OP}arrive_drop{sem}.shared::cta.b64 {state}, {place};")
            share -= 1
            dropped += 1
        else:
            lines.append(f"{OP}arrive{sem}.shared::cta.b64 {state}, {place};")
            share -= 1
    return lines, dropped


def _wait(random: Random, t: Thread, bar: int, phase: int, *, last: bool) -> None:
    """A wait for a phase: blocking, or a poll whose answer is kept, guards a statement, or opens a block."""
    sem = random.choice(("", "", "", ".acquire.cta", ".relaxed.cta", ".acquire.cluster"))
    which = random.choice(("try_wait", "test_wait"))
    state = t.states.get((bar, phase)) if random.random() < 0.7 else None
    name = f"{OP}{which}{'' if state else '.parity'}{sem}.shared::cta.b64"
    operands = f"[b{bar}], {state or phase % 2};"
    form = random.choices(("await", "poll", "guard", "block", "spin"), (8, 2, 1, 2 * last, 1))[0]
    if form == "await":
        t.lines.append(f"await {name} {operands}")
        return
    p = f"%p{t.register()}"
    if form == "spin":
        label = f"L{t.registers}"
        t.lines += [f"{label}:", f"{name} {p}, {operands}", f"@!{p} bra {label};"]
        return
    t.lines.append(f"{name} {p}, {operands}")
    if form == "guard":
        t.lines.append(f"@{random.choice(('', '!'))}{p} {OP}arrive.shared::cta.b64 _, [b{bar}];")
        return
    t.results.append(f"r{t.register()}")
    t.lines.append(f"selp.u32 {t.results[-1]}, 1, 0, {p};")
    if form == "block":
        t.lines.append(f"if ({t.results[-1]} == {random.randint(0, 1)}) {{")
        t.open += 1


def _end_of_life(random: Random, threads: list[Thread]) -> None:
    """One thread ends an mbarrier, after all have met if it does it right; perhaps it begins another."""
    if random.random() < 0.6 and not any(t.open for t in threads):
        for t in threads:
            t.lines.append("bar.sync 0;")
    t = random.choice(threads)
    t.lines.append(f"{OP}inval.shared::cta.b64 [b0];")
    if random.random() < 0.4:
        t.lines.append(f"{OP}init.shared::cta.b64 [b0], 1;")
        if random.random() < 0.5:
            t.lines.append(f"{OP}arrive.shared::cta.b64 _, [b0];")
            t.lines.append(f"await {OP}try_wait.parity.shared::cta.b64 [b0], 0;")
    elif random.random() < 0.3:
        t.lines.append("st.shared.b64 [b0], 7;")
