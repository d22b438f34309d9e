"""Mutations of programs that resemble human mistakes: omissions, reorderings, weakenings, off-by-one errors."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random

from tests.fuzz.draft import Draft, Role, units

Mistake = Callable[[Random, Draft], Draft | None]
"""The program with a mistake, or nothing where there is no occasion for it."""


def mutate(random: Random, draft: Draft, count: int = 1) -> Draft:
    """Apply up to ``count`` mutations; some results are not valid programs."""
    for _ in range(count):
        for _ in range(20):
            mistake = random.choices(list(MISTAKES), list(MISTAKES.values()))[0]
            changed = mistake(random, draft)
            if changed is not None and changed != draft:
                draft = changed
                break
    return draft


def _role(random: Random, draft: Draft) -> tuple[int, tuple[str, ...]] | None:
    filled = [k for k, role in enumerate(draft.roles) if role.lines]
    if not filled:
        return None
    k = random.choice(filled)
    return k, draft.roles[k].lines


def drop(random: Random, draft: Draft) -> Draft | None:
    """Drop a statement or a block."""
    found = _role(random, draft)
    if found is None:
        return None
    k, lines = found
    start, end = random.choice(units(lines))
    return draft.with_lines(k, lines[:start] + lines[end:])


def swap(random: Random, draft: Draft) -> Draft | None:
    """Swap two adjacent statements."""
    found = _role(random, draft)
    if found is None:
        return None
    k, lines = found
    parts = units(lines)
    pairs = [(a, b) for a in parts for b in parts if a[1] == b[0]]
    if not pairs:
        return None
    (a, middle), (_, b) = random.choice(pairs)
    return draft.with_lines(k, lines[:a] + lines[middle:b] + lines[a:middle] + lines[b:])


def move(random: Random, draft: Draft) -> Draft | None:
    """Move a statement within its thread."""
    found = _role(random, draft)
    if found is None:
        return None
    k, lines = found
    start, end = random.choice(units(lines))
    rest = lines[:start] + lines[end:]
    at = random.choice([0, len(rest), *(a for a, _ in units(rest))])
    return draft.with_lines(k, rest[:at] + lines[start:end] + rest[at:])


def repeat(random: Random, draft: Draft) -> Draft | None:
    """Duplicate a statement."""
    found = _role(random, draft)
    if found is None:
        return None
    k, lines = found
    start, end = random.choice([u for u in units(lines) if not lines[u[0]].endswith((":", "{"))] or [(0, 0)])
    return draft.with_lines(k, lines[:end] + lines[start:end] + lines[end:])


def move_to_other_thread(random: Random, draft: Draft) -> Draft | None:
    """Move a statement to another thread."""
    found = _role(random, draft)
    others = [j for j in range(len(draft.roles)) if found and j != found[0]]
    if found is None or not others:
        return None
    k, lines = found
    start, end = random.choice(units(lines))
    j = random.choice(others)
    there = draft.roles[j].lines
    at = random.choice([0, len(there), *(a for a, _ in units(there))])
    changed = draft.with_lines(k, lines[:start] + lines[end:])
    return changed.with_lines(j, there[:at] + lines[start:end] + there[at:])


WORDS: Mapping[str, tuple[str, ...]] = {
    ".cta": (".cluster", ".gpu"),
    ".cluster": (".cta", ".gpu"),
    ".gpu": (".cta", ".cluster", ".sys"),
    ".sys": (".cta", ".gpu"),
    ".release": (".relaxed",),
    ".acquire": (".relaxed",),
    ".relaxed": (".release", ".acquire"),
    ".acq_rel": (".relaxed", ".acquire", ".release"),
    ".sc": (".acq_rel",),
    ".weak": (".volatile",),
    "fence.acq_rel": ("fence.acquire", "fence.release"),
    "wait_group": ("wait_group.read",),
    "wait_group.read": ("wait_group",),
    "fence.proxy.async": ("fence.proxy.async.global", "fence.proxy.async.shared::cta", "fence.acq_rel.gpu"),
    "fence.proxy.async.shared::cta": ("fence.proxy.async.global", "fence.proxy.async.shared::cluster"),
    "fence.proxy.async.shared::cluster": ("fence.proxy.async.shared::cta",),
    "fence.proxy.async.global": ("fence.proxy.async.shared::cta",),
    "fence.mbarrier_init.release.cluster": ("fence.proxy.async", "fence.release.sync_restrict::shared::cta.cluster"),
    "fence.release.gpu": ("fence.mbarrier_init.release.cluster", "fence.release.sync_restrict::shared::cta.cluster"),
    "fence.acquire.gpu": ("fence.acquire.sync_restrict::shared::cluster.cluster",),
    "fence.release.cluster": (
        "fence.mbarrier_init.release.cluster",
        "fence.release.sync_restrict::shared::cta.cluster",
    ),
    "fence.acquire.cluster": ("fence.acquire.sync_restrict::shared::cluster.cluster",),
    "fence.acq_rel.cluster": (
        "fence.acquire.sync_restrict::shared::cluster.cluster",
        "fence.release.sync_restrict::shared::cta.cluster",
    ),
    "async::generic.release.sync_restrict::shared::cta": ("async::generic.acquire.sync_restrict::shared::cluster",),
    "tensormap::generic.release": ("tensormap::generic.acquire",),
    "arrive_drop": ("arrive",),
    "arrive.noinc": ("arrive",),
    "mbarrier.arrive": ("mbarrier.arrive_drop",),
    "arrive.expect_tx": ("arrive",),
    "bar.sync": ("bar.arrive",),
    "try_wait": ("test_wait",),
    ".read": ("",),
}
"""What may stand instead of a word of an instruction."""


def replace_instruction(random: Random, draft: Draft) -> Draft | None:
    """Replace an instruction by a weaker, stronger, wider, narrower or related one."""
    found = _role(random, draft)
    if found is None:
        return None
    k, lines = found
    occasions = [
        (n, word, m)
        for n, line in enumerate(lines)
        for word in WORDS
        for m in re.finditer(rf"{re.escape(word)}(?![\w:])", line.split(" [")[0])
    ]
    if not occasions:
        return None
    n, word, m = random.choice(occasions)
    line = lines[n][: m.start()] + random.choice(WORDS[word]) + lines[n][m.end() :]
    return draft.with_lines(k, (*lines[:n], line, *lines[n + 1 :]))


_NUMBER = re.compile(r"(?<![\w.%\[@])\d+(?![\w.\]])")


def change_number(random: Random, draft: Draft) -> Draft | None:
    """Change a count, a size, a parity or a value."""
    found = _role(random, draft)
    if found is None:
        return None
    k, lines = found
    occasions = [(n, m) for n, line in enumerate(lines) if "@" not in line for m in _NUMBER.finditer(line)]
    if not occasions:
        return None
    n, m = random.choice(occasions)
    value = int(m[0])
    others = {abs(value - 1), value + 1} if value < 4 else {value // 2, value * 2, value + 16}
    line = lines[n][: m.start()] + str(random.choice(sorted(others))) + lines[n][m.end() :]
    return draft.with_lines(k, (*lines[:n], line, *lines[n + 1 :]))


def poll_once(random: Random, draft: Draft) -> Draft | None:
    """A wait is a poll whose answer nobody heeds, or one that guards the next statement."""
    found = _role(random, draft)
    if found is None:
        return None
    k, lines = found
    waits = [n for n, line in enumerate(lines) if line.startswith("await mbarrier.")]
    if not waits:
        return None
    n = random.choice(waits)
    name, _, operands = lines[n].removeprefix("await ").partition(" ")
    poll: tuple[str, ...] = (f"{name} %p9, {operands}",)
    rest = lines[n + 1 :]
    if rest and rest[0].endswith(";") and not rest[0].startswith(("@", "await", "if")) and random.random() < 0.6:
        rest = (f"@{random.choice(('', '', '!'))}%p9 {rest[0]}", *rest[1:])
    elif random.random() < 0.5:
        poll = (*poll, "selp.u32 r9, 1, 0, %p9;")
    return draft.with_lines(k, (*lines[:n], *poll, *rest))


def move_role(random: Random, draft: Draft) -> Draft | None:
    """Place a role in the other CTA."""
    k = random.randrange(len(draft.roles))
    role = draft.roles[k]
    place = re.sub(r"\bcta ([01])\b", lambda m: f"cta {1 - int(m[1])}", role.place)
    roles = (*draft.roles[:k], Role(role.name, place, role.lines), *draft.roles[k + 1 :])
    return replace(draft, roles=roles)


def insert(random: Random, draft: Draft) -> Draft | None:
    """A statement too many: an end of life, an exit, a barrier, an access, a signal."""
    found = _role(random, draft)
    if found is None:
        return None
    k, lines = found
    bars = re.findall(r"\.b64 (b\w*)[;\[]", "\n".join(draft.objects)) or ["b0"]
    bar = random.choice(bars)
    line = random.choice(
        (
            f"mbarrier.inval.shared::cta.b64 [{bar}];",
            f"mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [{bar}], 16;",
            f"mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [{bar}], 16;",
            f"mbarrier.arrive.shared::cta.b64 _, [{bar}];",
            f"ld.shared.b64 %rd9, [{bar}];",
            "exit;",
            "bar.sync 0;",
            "fence.acq_rel.gpu;",
            "fence.proxy.async;",
        )
    )
    at = random.choice([0, len(lines), *(a for a, _ in units(lines))])
    return draft.with_lines(k, (*lines[:at], line, *lines[at:]))


MISTAKES: Mapping[Mistake, int] = {
    drop: 6,
    swap: 5,
    move: 3,
    repeat: 1,
    move_to_other_thread: 2,
    replace_instruction: 7,
    change_number: 3,
    poll_once: 2,
    move_role: 1,
    insert: 2,
}
"""Each with its weight."""
