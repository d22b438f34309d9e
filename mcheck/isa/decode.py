"""Decoding: from an instruction as written to its operation, or to an error that says what is legal."""

from __future__ import annotations

from functools import lru_cache

from mcheck.base.errors import InputError, Unsupported
from mcheck.ir.ops import Op
from mcheck.isa import operands
from mcheck.isa.families import DIALECT, LONGEST, find_family, ptx_families
from mcheck.isa.families.common import unsupported
from mcheck.isa.instruction import Instruction, Operand, Sink
from mcheck.isa.kinds import Kind
from mcheck.isa.matcher import OPERANDS, Failure, MatchedForm, Parts, Shapes, match
from mcheck.isa.operands import ObjectSpace, RegisterType
from mcheck.isa.schema import Family, Match
from mcheck.isa.targets import check_target
from mcheck.isa.unmodelled import INSTEAD, UNMODELLED
from mcheck.isa.wording import Wording, plain_wording, suggest

ILLEGAL = "illegal-instruction"
_WAITS = (("mbarrier", "test_wait"), ("mbarrier", "try_wait"))


def decode(
    instruction: Instruction,
    *,
    target: str | None = None,
    register_type: RegisterType | None = None,
    dialect: bool = True,
    awaited: bool = False,
    object_space: ObjectSpace | None = None,
) -> Op:
    """The operation of ``instruction``.

    ``target`` (``sm_90a``) restricts the instructions to that target's; without it those of every target are legal.
    ``register_type`` gives the PTX type of a register, or ``None`` where it is not known yet. ``dialect`` admits the
    short forms of the table dialect. ``awaited`` says that the predicate result of an mbarrier wait is left out (or
    ``_``). ``object_space`` gives the state space of a declared object (``global``, ``shared``, ``const``,
    ``param``), so that an address in another space than the instruction names is an error.

    Raises ``InputError`` for text that is not an instruction, ``Unsupported`` for a legal one that has no model.
    """
    opcode = instruction.opcode
    given: tuple[Operand, ...] = instruction.operands
    if awaited and opcode[:2] in _WAITS and not (given and isinstance(given[0], Sink)):
        given = (Sink(instruction.span), *given)
    shapes = tuple([operands.shape(operand, register_type) for operand in given])
    try:
        form = _match_form(opcode, shapes, target, dialect)
    except Unsupported as error:  # without a place, since it is remembered for an opcode
        raise Unsupported(error.message, instruction.span) from None
    if isinstance(form, Failure):
        raise _error(form, instruction, given)
    bound: dict[str, Operand] = {}
    for arg, index in form.binding:
        operand = given[index]
        bound[arg.name] = operand
        if arg.kind == "wait" and not awaited and isinstance(operand, Sink):
            words = plain_wording("the result of a wait cannot be dropped", "a predicate register")
            failure = Failure((0, 0), form.family, words, operand=index)
            raise _error(failure, instruction, given)
        problem = operands.value_problem(arg, operand, form.q, register_type, target)
        if problem is None and object_space is not None and (arg.space or arg.generic):
            problem = operands.space_problem(arg, operand, form.q, object_space)
        if problem is not None:
            failure = Failure((0, 0), form.family, plain_wording(*problem), operand=index)
            raise _error(failure, instruction, given)
    common = {
        "span": instruction.span,
        "text": instruction.text,
        "guard": instruction.guard,
        "section": form.family.section,
    }
    found = Match(form.family, form.variant, form.q, bound, common)
    return form.variant.lower(found) if form.variant.is_modelled(form.q) else unsupported(found)


@lru_cache(maxsize=65536)
def _match_form(opcode: Parts, shapes: Shapes, target: str | None, dialect: bool) -> MatchedForm | Failure:
    """What an opcode with operands of these shapes is; remembered, for few spellings make up a whole suite."""
    if target is not None:
        check_target(target)
    failures: list[Failure] = []
    bracketed = any(isinstance(shape, tuple) for shape in shapes)
    for find in (_DIALECT.get, find_family) if dialect and not bracketed else (find_family,):
        for length in range(min(len(opcode), LONGEST), 0, -1):
            family = find(opcode[:length])
            if family is not None:
                result = match(opcode, shapes, (family,), target)
                if isinstance(result, MatchedForm):
                    return result
                failures.append(result)
                break
    if not failures:
        return _unknown(opcode)
    return _telling(failures, shapes)


def _telling(failures: list[Failure], shapes: Shapes) -> Failure:
    """Of the failures of the two tables: a bare location means the dialect, unless only the brackets are missing."""
    first, last = failures[0], failures[-1]
    if first is last or last.rank[0] >= OPERANDS:
        return last
    if first.rank[0] > last.rank[0]:
        return first
    hinted = first.rank == last.rank and first.words().hint is not None and last.words().hint is None
    return first if "n" in shapes or hinted else last


def _unknown(opcode: Parts) -> Failure:
    import difflib  # only errors need it

    if opcode[0] in UNMODELLED:
        instead = INSTEAD.get(opcode[0])
        raise Unsupported(
            f"'{opcode[0]}' is a PTX instruction that is not modelled" + (f"; {instead}" if instead else "")
        )
    table = {family.head: family for family in ptx_families()}
    longest: Parts = max((head for head in table if opcode[: len(head) - 1] == head[:-1]), key=len, default=())
    if len(longest) > 1:
        legal = sorted(
            head[len(longest) - 1] for head in table if len(head) == len(longest) and head[:-1] == longest[:-1]
        )
        part = opcode[len(longest) - 1] if len(opcode) >= len(longest) else ""
        hint = suggest(["." + name for name in difflib.get_close_matches(part, legal, n=1, cutoff=0.6)])
        wording = Wording(f"'{'.'.join(opcode)}' is not an instruction", tuple("." + name for name in legal), hint)
        return Failure((0, 0), table[longest], lambda: wording, min(len(longest), len(opcode)) - 1)
    known = {head[0] for head in (*table, *_DIALECT)}
    tries = ((known, 0.8), (UNMODELLED, 0.8), (known, 0.6))
    turned = [name for name in sorted(known) if sorted(name) == sorted(opcode[0])]  # letters in another order
    close = (difflib.get_close_matches(opcode[0], sorted(w), n=1, cutoff=c) for w, c in tries)
    near = next(filter(None, (turned, *close)), [])
    unknown = Wording(f"unknown instruction '{opcode[0]}'", hint=suggest(near))
    return Failure((0, 0), _NOWHERE, lambda: unknown, 0)


def _error(failure: Failure, instruction: Instruction, given: tuple[Operand, ...]) -> InputError:
    span = instruction.span
    if failure.part is not None and failure.part < len(instruction.spans):
        span = instruction.spans[failure.part]
    elif failure.operand is not None and failure.operand < len(given):
        span = given[failure.operand].span or span
    words = failure.words()
    return InputError(
        words.message,
        span,
        code=ILLEGAL,
        expected=words.legal,
        hint=words.hint,
        section=failure.family.section,
    )


_DIALECT: dict[Parts, Family] = {family.head: family for family in DIALECT}
_NOWHERE = Family(name="", kind=Kind.UNKNOWN, section="9.7", title="", variants=())
