"""Names of cycles. Classic shapes have diy's names: the family, then the order between the accesses of each thread.

``MP+rel+acq``: the release is the second access of the first thread, the acquire the first one of the second.
``SB+fence.scs``: the same fence between the accesses of all threads. Other cycles are named by their edges.
"""

from __future__ import annotations

from mcheck.tools.generate.alphabet import Arc
from mcheck.tools.generate.cycles import Cycle

FAMILIES = {
    "WW rf RR fr": "MP",
    "WR fr WR fr": "SB",
    "RW rf RW rf": "LB",
    "WW rf RW co": "S",
    "WW co WR fr": "R",
    "WW co WW co": "2+2W",
    "W rf RW rf RR fr": "WRC",
    "W rf RR fr WR fr": "RWC",
    "W rf RW rf RW co": "WWC",
    "W rf RW co WR fr": "WRW+WR",
    "W rf RR fr WW co": "WRR+2W",
    "W rf RW co WW co": "WRW+2W",
    "WW rf RW rf RR fr": "ISA2",
    "WW rf RR fr WR fr": "W+RWC",
    "WR fr WR fr WR fr": "3.SB",
    "RW rf RW rf RW rf": "3.LB",
    "WW co WW co WW co": "3.2W",
    "WW rf RW co WR fr": "Z6.0",
    "WW co WW rf RW co": "Z6.1",
    "WW rf RW rf RW co": "Z6.2",
    "WW co WW rf RR fr": "Z6.3",
    "WW co WR fr WR fr": "Z6.4",
    "WW co WW co WR fr": "Z6.5",
    "W rf RR fr W rf RR fr": "IRIW",
    "W rf RR fr W rf RW co": "IRRWIW",
    "W rf RW co W rf RW co": "IRWIW",
}
COHERENCE = {
    "W rf RR fr": "CoRR",
    "RW rf": "CoRW1",
    "W rf RW co": "CoRW2",
    "W co WR fr": "CoWR",
    "WW co": "CoWW",
    "WR fr": "CoWR0",
}


def name(cycle: Cycle) -> str:
    """The name of a cycle, unique within its alphabet up to numbering."""
    if any(arc.source.copied for arc in cycle) or any(a.edge.relation == "po" and a.edge.far for a in cycle):
        return "-".join(_spelled(arc) for arc in cycle)
    return _classic(cycle) or "-".join(_spelled(arc) for arc in cycle)


def _classic(cycle: Cycle) -> str | None:
    """The name by family and threads, for the rotation with which the family starts."""
    turns = [n for n, arc in enumerate(cycle) if arc.edge.far]
    if not turns:
        return None
    choices = []
    for turn in turns:
        start = turn + 1
        rotated = (*cycle[start:], *cycle[:start])
        found = _family(rotated)
        if found is not None:
            choices.append((found, *_threads(rotated)))
    if not choices:
        return None
    family, tokens, far = min(choices, key=lambda c: ([t or "" for t in c[1]], c[2]))
    # A lone access has a token only if it is not relaxed.
    shown = [t for t in tokens if t]
    if len(shown) > 1 and len(set(shown)) == 1 and len(shown) == len([t for t in tokens if t is not None]):
        suffix = f"+{shown[0]}s"
    else:
        suffix = "".join(f"+{t}" for t in shown)
    where = "" if set(far) == {"gpu"} else "." + (far[0] if len(set(far)) == 1 else "".join(f[:2] for f in far))
    return f"{family}{where}{suffix}"


def _family(cycle: Cycle) -> str | None:
    parts: list[str] = []
    letters = cycle[0].source.kind
    moves = [arc.edge.moved for arc in cycle if arc.edge.relation == "po"]
    for arc in cycle:
        if arc.edge.far:
            parts += [letters, arc.edge.relation]
            letters = arc.target.kind
        elif arc.communicates:
            return None
        else:
            letters += arc.target.kind
    key = " ".join(parts)
    if all(moves):
        return FAMILIES.get(key)
    return COHERENCE.get(key) if not any(moves) else None


def _threads(cycle: Cycle) -> tuple[tuple[str | None, ...], tuple[str, ...]]:
    """A token per thread (``None`` for a lone relaxed access), and the distances between threads."""
    tokens: list[str | None] = []
    far: list[str] = []
    token: str | None = None
    lone = True
    for arc in cycle:
        if arc.edge.far:
            if lone and arc.source.note != "rlx":
                token = f"{arc.source.kind.lower()}.{arc.source.note}"
            tokens.append(token)
            far.append(arc.edge.far)
            token, lone = None, True
        else:
            token, lone = _token(arc), False
    return tuple(tokens), tuple(far)


def _token(arc: Arc) -> str:
    notes = (arc.source.note, arc.target.note)
    between = "" if arc.edge.name == "Po" else arc.edge.name.removeprefix("Dp").lower()
    if notes == ("rlx", "rlx"):
        return between or "rlx"
    told = notes[0] if notes[0] == notes[1] else "-".join(n for n in notes if n != "weak")
    if notes[0] != notes[1] and "weak" in notes and not between and _side(arc, told):
        return told
    told = notes[0] if notes[0] == notes[1] else "-".join(notes)
    return f"{between}-{told}" if between else told


def _side(arc: Arc, told: str) -> bool:
    """Whether the weak access is before the release or after the acquire."""
    return (told.startswith("rel") and arc.source.note == "weak") or (
        told.startswith("acq") and arc.target.note == "weak"
    )


def _spelled(arc: Arc) -> str:
    """An edge with the annotation of its source, and the kind of the copy that begins at its target."""
    label = arc.edge.label
    source, target = arc.source, arc.target
    note = "" if source.copied or source.note == "weak" else f"{source.note}."
    if target.copied and not source.copied:
        return f"{note}{label}.{target.note}"
    if target.copied and source.copied and arc.edge.relation != "copy":
        return f"{note}{label}.{target.note}"
    return f"{note}{label}"
