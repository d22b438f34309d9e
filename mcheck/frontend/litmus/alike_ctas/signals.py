"""Turns between CTAs of a sketch, any number of them: each waits for the signal of the one before.

The conditions are those of ``mcheck.proofs.cta_pairs``, 5. Either the word is the same for all, and the values are
linear in the number of the CTA, or in the ticket that it has drawn; or each CTA has a word of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from mcheck.base.records import dataclass
from mcheck.frontend.litmus.alike_ctas.places import FamilyThread
from mcheck.frontend.litmus.alike_ctas.registers import COUNTED_TYPES, SMALL, TICKET
from mcheck.frontend.litmus.alike_ctas.words import check_aligned, initial_value
from mcheck.ir import ops
from mcheck.ir.cta_family import CTA, FamilyAccess, FamilyTurns, Linear, NotAlike, variable
from mcheck.ir.memory import MemObject
from mcheck.ir.ops import Op, performed_operation
from mcheck.ir.scopes import GRID_SCOPES

MOST = 1 << 21
"""There are fewer CTAs (``mcheck.frontend.litmus.placement.LIMITS``)."""


@dataclass(frozen=True, slots=True)
class TurnStep:
    """A wait for a signal of another CTA, or a signal: the place of its word, and the value if it is linear; ``at`` is
    the place in the code of its thread.
    """

    thread: FamilyThread
    op: Op
    row: FamilyAccess
    value: Linear | None
    at: int
    conditional: bool


def depends_on_number(access: FamilyAccess) -> bool:
    """Whether the place of an access, or how often it happens, depends on the number of the CTA."""
    forms = [access.offset, *(form for one in access.variables for form in (one.low, one.high, one.dividend) if form)]
    return any(name == CTA for form in forms for name, _ in form.terms)


def read_turns(
    steps: Sequence[TurnStep], fences: Collection[tuple[int, int]], others: Collection[str],
    objects: Mapping[str, MemObject], first: int, ticket: int | None,
) -> FamilyTurns:  # fmt: skip
    """The turns of the CTAs. ``fences`` are the wide ones, by thread and place; ``others`` the objects that are
    accessed otherwise; ``ticket`` is the first number that is drawn. Raises ``NotAlike``.
    """
    span = steps[-1].op.span
    waits, signals = ([s for s in steps if isinstance(s.op, ops.Await) is waits] for waits in (True, False))
    if len(waits) != 1 or len(signals) != 1 or waits[0].conditional or signals[0].conditional:
        raise NotAlike("a CTA does not wait once for the one before, and signal the next one once", span)
    wait, signal = waits[0], signals[0]
    if wait.thread is not signal.thread or wait.at > signal.at:
        raise NotAlike("a CTA does not signal by the thread that has waited, afterwards", span)
    name, size = wait.row.object, wait.row.size
    if (name, size) != (signal.row.object, signal.row.size) or name in others:
        raise NotAlike("a word by which CTAs signal is accessed otherwise, too", span)
    _check_accesses(wait, signal)
    _check_passes_on(wait, signal, fences)
    check_aligned(wait.row.offset, size, span)
    if wait.value is None or signal.value is None:
        raise NotAlike("what a CTA waits for, or signals, is not linear in its number", span)
    draws = any(name == TICKET for form in (wait.value, signal.value) for name, _ in form.terms)
    if draws and ticket is None:
        raise NotAlike("CTAs do not draw one ticket each", span)
    if draws and any(name == CTA for form in (wait.value, signal.value) for name, _ in form.terms):
        raise NotAlike("CTAs draw tickets, and signal by their numbers", span)
    awaited, made = (_by_number(form, (ticket or 0) - first) if draws else form for form in (wait.value, signal.value))
    forms = awaited, made, wait.row.offset, signal.row.offset
    if any(name != CTA for form in forms for name, _ in form.terms):
        raise NotAlike("signals depend on something else than the number of a CTA", span)
    _check_next(wait, signal, awaited, made, objects, first)
    assert wait.op.span is not None
    assert signal.op.span is not None
    return FamilyTurns(name, wait.op.span, signal.op.span, made, draws, (wait.row, signal.row))


def _by_number(form: Linear, before: int) -> Linear:
    """A form in tickets as one in the numbers of CTAs: CTA k is taken for the one that has drawn k plus ``before``."""
    factor = dict(form.terms).get(TICKET, 0)
    return form.plus(variable(TICKET), -factor).plus(variable(CTA), factor).plus(Linear(before), factor)


def _check_accesses(wait: TurnStep, signal: TurnStep) -> None:
    """Check that a signal and a wait are morally strong (PTX ISA 8.7), and the wait for one value. Raises."""
    load, store = performed_operation(wait.op), signal.op
    assert isinstance(wait.op, ops.Await)
    assert isinstance(load, ops.Load)
    assert isinstance(store, ops.Store)
    exact = wait.op.compare is not None and wait.op.compare[0] == "==" and not wait.op.followed
    single = len(load.dsts) == len(store.srcs) == 1 and load.type in COUNTED_TYPES and store.type in COUNTED_TYPES
    if not exact or not single:
        raise NotAlike("a wait for the CTA before is not for one value", wait.op.span)
    if load.sem == "weak" or load.scope not in GRID_SCOPES or store.scope not in GRID_SCOPES:
        raise NotAlike("CTAs signal by weak accesses, or at a narrow scope", wait.op.span)


def _check_passes_on(wait: TurnStep, signal: TurnStep, fences: Collection[tuple[int, int]]) -> None:
    """Check that a signal releases what its wait has acquired: so order goes on along all CTAs. Raises."""
    load, store = performed_operation(wait.op), signal.op
    assert isinstance(load, ops.Load)
    assert isinstance(store, ops.Store)
    places = sorted(at for thread, at in fences if thread == wait.thread.number)
    acquired = wait.at if load.sem == "acquire" else next((at for at in places if at > wait.at), None)
    released = signal.at if store.sem == "release" else next((at for at in reversed(places) if at < signal.at), None)
    if acquired is None or released is None or acquired > released:
        raise NotAlike("a signal does not release what the wait before it acquires", signal.op.span)


def _check_next(
    wait: TurnStep, signal: TurnStep, awaited: Linear, made: Linear, objects: Mapping[str, MemObject], first: int
) -> None:
    """Check that the signal of the CTA before alone ends a wait, the initial value that of the first CTA. Raises."""
    span, size, offset = signal.op.span, wait.row.size, wait.row.offset
    along, by = (dict(form.terms).get(CTA, 0) for form in (offset, awaited))
    if signal.row.offset != offset.plus(Linear(along)) or made != awaited.plus(Linear(by)):
        raise NotAlike("a signal is not what the next CTA waits for", span)
    modulus, name = 1 << 8 * size, wait.row.object
    begin, value = (form.value({CTA: first}) for form in (offset, awaited))
    if along == 0:
        if by <= 0 or value < 0 or by * MOST + abs(awaited.constant) >= SMALL:  # else two may be equal modulo 2^32
            raise NotAlike("the values of turns do not grow from a small one on", span)
        others_wait = True
    else:
        if by or along < size or begin < 0:
            raise NotAlike("signals have neither one word nor one value", span)
        content = objects[name].init or b""
        later = range(begin + along, max(len(content), begin + along) + along, along)
        others_wait = all((initial_value(objects, (name, at), size) - value) % modulus for at in later)
    if not others_wait or (initial_value(objects, (name, begin), size) - value) % modulus:
        raise NotAlike("the initial value does not let the first CTA through alone", wait.op.span)
