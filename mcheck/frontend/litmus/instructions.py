"""The parser of an instruction: ``await``, guard, opcode, operands.

Whether an instruction exists and what it means is decided by ``mcheck.isa``; this module has the general syntax of PTX
instructions (PTX ISA 4.3, 6.4).
"""

from __future__ import annotations

from collections.abc import Callable

from mcheck.base.errors import InputError, Span
from mcheck.base.records import dataclass, replace
from mcheck.frontend.litmus.codes import problem
from mcheck.frontend.litmus.error_recovery import begins_statement
from mcheck.frontend.litmus.expressions import ABOVE_COMPARISON, MAX_DEPTH, parse_expression, reads_register
from mcheck.frontend.litmus.lexer import NAME, Tokens
from mcheck.frontend.litmus.scope import Scope
from mcheck.frontend.litmus.statements import Step
from mcheck.ir.expr import Const, Expr, Name, Reg, Unary
from mcheck.ir.ops import Await, Guard, MbarrierWait, Op, ScalarRead
from mcheck.ir.resolve import Fold, collect_free_names
from mcheck.isa import decode
from mcheck.isa.instruction import Address, Instruction, Operand, Pair, Sink, Value, Vector

BRANCHES = frozenset(("bra", "goto", "beq", "bne", "blt", "bgt", "ble", "bge"))
_ELLIPSIS = ("..", ".", "…")
COMPARISONS = frozenset(("==", "!=", "<", "<=", ">", ">="))


def parse_operation(tokens: Tokens, scope: Scope, target: str | None) -> Step:
    """Parse and decode one instruction, up to but without its semicolon (or the end of the cell)."""
    first = tokens.at
    guard = _guard(tokens, scope) if tokens.text == "@" else None
    waits = tokens.text == "await" and tokens.kinds[tokens.at + 1] == NAME
    if waits:
        tokens.at += 1
    at = tokens.at
    opcode = tokens.texts[at]
    if tokens.kinds[at] != NAME or opcode[0] == "." or opcode == "_":
        raise tokens.unexpected("an instruction")
    tokens.at += 1
    parts = tuple(opcode.split("."))
    compares = waits and parts[0] != "mbarrier"
    operands = _operands(tokens, scope, parts[0], ABOVE_COMPARISON if compares else 1)
    compare: tuple[str, Expr] | None = None
    if compares and tokens.text in COMPARISONS:
        operator = tokens.text
        tokens.at += 1
        compare = operator, parse_expression(tokens, scope)
    if tokens.text not in ("", ";"):
        if tokens.on_new_line():
            raise problem("LIT084", tokens.after_last(), expected="';' after an instruction")
        raise tokens.unexpected("',' and another operand, or ';'" if operands else "an operand, or ';'")
    span = tokens.span_since(first)
    text = tokens.raw_since(first)
    instruction = Instruction(
        opcode=parts,
        operands=tuple(operands),
        guard=None if waits else guard,
        text=text[text.index("await") + len("await") :].strip() if waits else text,
        span=span,
        spans=_part_spans(tokens, at, parts),
    )
    wait = _Wait(guard, compare, text) if waits else None
    lowering = _Lowering(instruction, wait, target, scope.register_type, scope.object_space)
    loose = tuple([index for index, item in enumerate(operands) if _is_foldable(item, scope)])
    again = None if not loose else lambda fold: lowering.lower(_folded(instruction, loose, fold))
    folded = tuple(item.expr for index in loose if isinstance(item := operands[index], Value))
    return Step(lowering.lower(instruction), decode_folded=again, foldable=folded)


@dataclass(frozen=True, slots=True)
class _Wait:
    """The guard and the comparison of an ``await``."""

    guard: Guard | None
    compare: tuple[str, Expr] | None
    text: str


@dataclass(frozen=True, slots=True)
class _Lowering:
    """The lowering of an instruction of this file to an operation."""

    instruction: Instruction
    wait: _Wait | None
    target: str | None
    register_type: Callable[[str], str | None]
    object_space: Callable[[str], str | None]

    def lower(self, instruction: Instruction) -> Op:
        """The operation of ``instruction``: this one, or the same with some operands folded."""
        try:
            op = decode(
                instruction,
                target=self.target,
                register_type=self.register_type,
                awaited=self.wait is not None,
                object_space=self.object_space,
            )
        except InputError as error:
            error.hint = error.hint or self._hint(instruction)
            raise
        if op.span is not instruction.span or op.text != instruction.text:
            op = replace(op, span=instruction.span, text=instruction.text)
        return op if self.wait is None else self._await(op, self.wait)

    def _hint(self, instruction: Instruction) -> str | None:
        """A hint for common mistakes in mbarrier waits and arrives."""
        first = instruction.operands[0] if instruction.operands else None
        arrives = instruction.opcode[:2] in (("mbarrier", "arrive"), ("mbarrier", "arrive_drop"))
        if arrives and isinstance(first, Address):
            return "the first operand is a register for the returned state, or _ if it is not needed"
        if "_wait" not in "".join(instruction.opcode):
            return None
        if self.wait is not None:
            return "leave out the predicate after await"
        if instruction.operands and isinstance(instruction.operands[0], Address):
            return "write await before it to wait for the phase, or add the predicate register that it sets"
        return None

    def _await(self, inner: Op, wait: _Wait) -> Op:
        """The ``Await`` of an mbarrier wait, or of a load or an atomic with a comparison."""
        if isinstance(inner, MbarrierWait) and wait.compare is None:
            inner = replace(inner, dst=None)
        elif not (isinstance(inner, ScalarRead) and wait.compare is not None):
            found = ".".join(self.instruction.opcode)
            expected = "an mbarrier wait, or a load or an atomic with a comparison"
            hint = "compare the loaded value: await ld… r0, [x] == 1" if isinstance(inner, ScalarRead) else None
            raise problem("LIT058", self.instruction.spans[0], found=found, expected=expected, hint=hint)
        return Await(
            inner=inner,
            compare=wait.compare,
            guard=wait.guard,
            span=inner.span,
            text=wait.text,
            section=inner.section,
        )


def _is_foldable(item: Operand, scope: Scope) -> bool:
    """Whether a value depends only on loop variables and special registers, so that it becomes an immediate."""
    if not isinstance(item, Value) or isinstance(item.expr, Const | Reg):
        return False
    names: set[str] = set()
    collect_free_names(item.expr, names)
    return (
        bool(names) and not reads_register(item.expr) and all(name[0] == "%" or scope.is_symbol(name) for name in names)
    )


def _folded(instruction: Instruction, loose: tuple[int, ...], fold: Fold) -> Instruction:
    """``instruction`` with its foldable operands folded, so that the table can check them as immediates."""
    operands = list(instruction.operands)
    for index in loose:
        item = operands[index]
        assert isinstance(item, Value)
        operands[index] = Value(fold(item.expr), item.negated, item.span)
    return replace(instruction, operands=tuple(operands))


def _guard(tokens: Tokens, scope: Scope) -> Guard:
    tokens.at += 1
    negated = tokens.accept("!")
    return Guard(_register(tokens, scope, "a predicate register"), negated)


def _register(tokens: Tokens, scope: Scope, expected: str) -> Reg:
    """Parse ``%name``, or ``name`` if it is a register."""
    percent = tokens.text == "%" and tokens.kinds[tokens.at + 1] == NAME
    if percent:
        tokens.at += 1
    name = tokens.text
    if tokens.kind != NAME or "." in name:
        raise tokens.unexpected(expected)
    if not percent and not scope.is_register(name):
        hint = f"write %{name}, or declare it: .reg .pred {name};"
        raise problem("LIT018", tokens.span(), name=name, expected=expected, hint=hint)
    tokens.at += 1
    return Reg(name)


def _part_spans(tokens: Tokens, at: int, parts: tuple[str, ...]) -> tuple[Span, ...]:
    whole = tokens.span(at)
    spans: list[Span] = []
    column = whole.column
    for part in parts:
        spans.append(Span(whole.path, whole.line, column, max(len(part), 1)))
        column += len(part) + 1
    return tuple(spans)


def _operands(tokens: Tokens, scope: Scope, head: str, minimum: int) -> list[Operand]:
    """All operands; ``minimum`` is the precedence below which an operator ends one."""
    if tokens.text in ("", ";") or (tokens.on_new_line() and begins_statement(tokens)):
        return []
    found: list[Operand] = []
    branch = head in BRANCHES
    while True:
        if branch and tokens.kind == NAME and tokens.texts[tokens.at + 1] in ("", ";"):
            span = tokens.span()
            found.append(Value(Name(tokens.name("a label"), span=span), span=span))
        else:
            opaque = head in ("wgmma", "tcgen05")
            found.append(parse_operand(tokens, scope, first=not found, opaque=opaque, minimum=minimum))
        if not tokens.accept(","):
            return found


def parse_operand(
    tokens: Tokens, scope: Scope, *, first: bool = False, opaque: bool = False, depth: int = 0, minimum: int = 1
) -> Operand:
    """Parses one operand; ``first`` ones may be pairs ``p|q``; ``opaque`` register lists may be elided: ``{...}``."""
    at = tokens.at
    text = tokens.texts[at]
    if depth > MAX_DEPTH:
        raise problem("LIT015", tokens.span(), expected=f"at most {MAX_DEPTH} nested operands")
    if text == "[":
        tokens.at += 1
        address, *rest = _list(tokens, scope, "]", depth)
        return Address(address, rest=tuple(rest), span=tokens.span_since(at))
    if text == "{":
        tokens.at += 1
        if opaque and tokens.text in _ELLIPSIS:
            while tokens.text in _ELLIPSIS:
                tokens.at += 1
            tokens.expect("}")
            return Vector((), tokens.span_since(at))
        if opaque and (names := _opaque_names(tokens)) is not None:
            return Vector(names, tokens.span_since(at))
        return Vector(_list(tokens, scope, "}", depth), tokens.span_since(at))
    if first and (pair := _pair(tokens, scope)) is not None:
        return pair
    if text == "_":
        tokens.at += 1
        return Sink(tokens.span(at))
    expr = parse_expression(tokens, scope, minimum)
    span = tokens.span_since(at)
    if isinstance(expr, Unary) and expr.op == "!" and isinstance(expr.operand, Reg):
        return Value(expr.operand, True, span)
    return Value(expr, False, span)


def _opaque_names(tokens: Tokens) -> tuple[Operand, ...] | None:
    """The registers up to ``}``, declared or not, since nothing is said of what they hold; ``None`` if these are no
    plain names.
    """
    end = tokens.at
    while tokens.kinds[end] == NAME and tokens.texts[end + 1] == ",":
        end += 2
    if tokens.kinds[end] != NAME or tokens.texts[end + 1] != "}":
        return None
    names = tuple(Value(Reg(tokens.texts[k]), span=tokens.span(k)) for k in range(tokens.at, end + 1, 2))
    tokens.at = end + 2
    return names


def _pair(tokens: Tokens, scope: Scope) -> Pair | None:
    """``p|q``, either of which may be ``_``."""
    at = tokens.at
    width = 2 if tokens.texts[at] == "%" else 1
    if tokens.kinds[at + width - 1] != NAME or tokens.texts[at + width] != "|":
        return None
    ends: list[Operand] = []
    for last in (False, True):
        here = tokens.at
        if tokens.accept("_"):
            ends.append(Sink(tokens.span(here)))
        else:
            register = _register(tokens, scope, "a destination register or '_'")
            ends.append(Value(register, span=tokens.span_since(here)))
        if not last:
            tokens.expect("|")
    return Pair(ends[0], ends[1], tokens.span_since(at))


def _list(tokens: Tokens, scope: Scope, end: str, depth: int) -> tuple[Operand, ...]:
    items: list[Operand] = []
    if end == "}" and tokens.accept(end):
        return ()
    while True:
        items.append(parse_operand(tokens, scope, depth=depth + 1))
        if tokens.accept(end):
            return tuple(items)
        tokens.expect(",", f"',' or '{end}'")
