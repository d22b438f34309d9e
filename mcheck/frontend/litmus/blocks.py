"""The block form: a block of statements per role, PTX throughout.

``name@cta 0, warp 1..5 { … }`` with ``for``, ``if``, ``const``, ``.reg``, labels and instructions. Loops of constant
bounds are unrolled and branches on registers lowered by ``mcheck.frontend.litmus.unroll``.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from mcheck.base.errors import InputError, Span, Unsupported
from mcheck.frontend.litmus.binding import Role, bind
from mcheck.frontend.litmus.codes import did_you_mean, problem
from mcheck.frontend.litmus.conditions import PARTS, tail
from mcheck.frontend.litmus.declarations import ANY, any_number, init_block, registers
from mcheck.frontend.litmus.definitions import DEFINITIONS, definition
from mcheck.frontend.litmus.error_recovery import OPEN, begins_role, skip_section, skip_statement
from mcheck.frontend.litmus.expressions import expression, registers_in
from mcheck.frontend.litmus.header import Header
from mcheck.frontend.litmus.initial import Initial
from mcheck.frontend.litmus.instructions import operation
from mcheck.frontend.litmus.lexer import END, NAME, NUMBER, Tokens
from mcheck.frontend.litmus.periodicity import find_periodic_loops
from mcheck.frontend.litmus.placement import placement
from mcheck.frontend.litmus.scope import Scope
from mcheck.frontend.litmus.statements import Body, Define, For, If, Mark, Statement
from mcheck.frontend.litmus.unroll import Counting
from mcheck.ir.expr import Binary, Const, Expr, Name
from mcheck.ir.loop_unrolling import Aperiodic, Rounds
from mcheck.ir.program import Long, Program

MAX_NESTING = 50
EMPTY = Body(())


def blocks(
    head: Header, end: int, size: int | None = None, *, every: bool = False, counting: Counting | None = None
) -> Program:
    """Parses the roles of a file whose init block ends at offset ``end``.

    A constant that is any number is ``size`` here; without one, the program says how it can be had (``Program.sized``)
    to those who ask about ``every`` number, and to others it is ``Unsupported``. To them, a program whose loops run
    often comes with as few rounds as will do, and with how it can be had with more (``Program.long``).
    """
    source = head.source
    scope = Scope()
    scope.given = 1 if size is None else size
    initial = Initial()
    with scope.mistakes:
        if head.words:
            _header_words(Tokens(source, 0, head.body - 1, head.words), scope)
        init_block(Tokens(source, head.body, end + 1), scope, initial)
        tokens = Tokens(source, end + 1, len(source.clean))
        roles = _roles(tokens, scope, head.target)
        ending = tail(tokens, scope.for_tail())
    if every and scope.free is None and counting is None and not scope.mistakes and (long := _long(roles, scope)):
        return _with_few(head, end, long)
    program = bind(head, scope, initial, list(roles.values()), ending, dialect=False, counting=counting)
    if scope.free is None or size is not None:
        return program
    name, span = scope.free
    if not every:
        raise Unsupported(f"{name} is any number: `mcheck check` alone asks about all of them", span)
    return replace(program, free=name, sized=_Sizes(head, end).program, rounds=partial(rounds, head, end))


class _Sizes:
    """The programs of a file whose constant is any number, by that number. The roles are read once, so that the
    operations of one program are those of another one; a number for which that fails is read by itself, and says what
    is wrong with it.
    """

    def __init__(self, head: Header, end: int) -> None:
        self._head, self._end = head, end
        self._roles: tuple[list[Role], int] | None = None
        self._bases: tuple[int, ...] = ()
        self._tried = False

    def program(self, size: int) -> Program:
        """The program with a number."""
        alone = partial(blocks, self._head, self._end, size, counting=Counting())
        try:
            return self._bound(size) or alone()
        except InputError:
            return alone()

    def _bound(self, size: int) -> Program | None:
        head, source = self._head, self._head.source
        scope, initial = Scope(), Initial()
        scope.given = size
        if head.words:
            _header_words(Tokens(source, 0, head.body - 1, head.words), scope)
        init_block(Tokens(source, head.body, self._end + 1), scope, initial)
        if not self._tried:
            self._tried = True
            self._roles = self._read()
        if self._roles is None or scope.free is None or scope.mistakes:
            return None
        roles, behind = self._roles
        ending = tail(Tokens(source, behind, len(source.clean)), scope.for_tail())
        known = {scope.free[0]: size}
        found = bind(head, scope, initial, roles, ending, dialect=False, counting=Counting(), known=known)
        bases = tuple(i.base for i in found.memory.instances)
        if self._bases not in ((), bases):  # what statements have remembered are other addresses
            self._roles = None
            return None
        self._bases = bases
        return found

    def _read(self) -> tuple[list[Role], int] | None:
        """The roles with the constant as a name, and where they end."""
        try:
            _, tokens, roles = _with_a_name(self._head, self._end)
        except (InputError, Aperiodic, Unsupported):
            return None
        return list(roles.values()), tokens.starts[tokens.at]


def _long(roles: dict[str, Role], scope: Scope) -> Rounds | None:
    """How roles repeat whose loops run often, if they do."""
    try:
        found = find_periodic_loops(roles, scope.objects, None)
    except Aperiodic:
        return None
    counts = [cuts.count - cuts.behind for cuts in found.loops.values() if cuts.count is not None]
    if max(counts) > 2 * min(counts):  # those that run on and on while others have ended do not repeat together
        return None
    return found if min(counts) > found.ahead + 3 * found.period else None


def _with_few(head: Header, end: int, found: Rounds) -> Program:
    """The program with a period of its long loops, behind what is left out."""

    def without(kept: int, left_out: int) -> Program:
        return blocks(head, end, counting=Counting(found.loops, kept, left_out))

    few = without(found.ahead, found.left_out(found.ahead, found.period))
    return replace(few, long=Long(found, without, partial(blocks, head, end)))


def rounds(head: Header, end: int) -> Rounds:
    """How the roles of a file repeat over its constant that is any number; raises ``Aperiodic`` if they do not.

    The constant stays a name in them. In the init block it is a number, and may stand in sizes alone.
    """
    try:
        scope, _, roles = _with_a_name(head, end)
    except InputError as error:
        raise Aperiodic(error.message, error.span) from None
    assert scope.free is not None, "asked of files that have such a constant"
    return find_periodic_loops(roles, scope.objects, scope.free[0])


def _with_a_name(head: Header, end: int) -> tuple[Scope, Tokens, dict[str, Role]]:
    """The names of a file and its roles, in which the constant that is any number is one, and what is behind them."""
    source = head.source
    scope, numbered = Scope(), Scope()
    scope.given = numbered.given = 1
    scope.symbolic = True
    for one in (scope, numbered):
        if head.words:
            _header_words(Tokens(source, 0, head.body - 1, head.words), one)
    sizes = Tokens(source, head.body, end + 1)
    if scope.free is not None:
        _only_in_sizes(sizes, *scope.free)
    for name, value in scope.derived.items():
        _only_in_sizes(sizes, name, None, plain=_is_sum_of_products(value))
    init_block(Tokens(source, head.body, end + 1), numbered, Initial())
    scope.objects.update(numbered.objects)
    scope.types.update(numbered.types)
    tokens = Tokens(source, end + 1, len(source.clean))
    return scope, tokens, _roles(tokens, scope, head.target)


ASSEMBLY = frozenset(("asm", "__asm", "__asm__"))
OF_ASSEMBLY = (
    "of inline assembly write the instructions inside the quotes, %0 and the like replaced by names; "
    "nvcc -ptx makes a module of a whole kernel"
)
FUNCTIONS = {
    "__syncthreads": "bar.sync 0",
    "__syncwarp": "bar.warp.sync 0xffffffff",
    "__threadfence": "fence.acq_rel.gpu",
    "__threadfence_block": "fence.acq_rel.cta",
    "__threadfence_system": "fence.acq_rel.sys",
}
"""What people write out of habit."""

GROWING = frozenset(("*", "+", "(", ")"))
"""What may stand beside the number in a size: such a size grows by ever as much, or by more."""


def _is_sum_of_products(value: Expr) -> bool:
    match value:
        case Binary("+" | "*", left, right):
            return _is_sum_of_products(left) and _is_sum_of_products(right)
    return isinstance(value, Name) or (isinstance(value, Const) and value.value >= 0)


def _only_in_sizes(tokens: Tokens, name: str, declared: Span | None, *, plain: bool = True) -> None:
    """Raises ``Aperiodic`` where a name stands in an init block other than in the first size of an object, in which
    there is nothing else than sums and products, and of which the name itself is made (``plain``).
    """
    tokens.at = 0
    inside: int | None = None
    while tokens.kind != END:
        at, text = tokens.at, tokens.text
        if text == "[" and inside is None:
            inside = at
        elif text == "]" and inside is not None:
            texts, kinds = tokens.texts[inside + 1 : at], tokens.kinds[inside + 1 : at]
            grows = all(k in (NAME, NUMBER) or t in GROWING for t, k in zip(texts, kinds, strict=True))
            called = any(k == NAME and t == "(" for k, t in zip(kinds, texts[1:], strict=False))
            if name in texts and (not (plain and grows) or called or tokens.kinds[inside - 1] != NAME):
                raise Aperiodic(f"{name} in a size that is no sum of products", tokens.span(inside))
            inside = None
        elif text == "include" or (text == name and inside is None and tokens.span() != declared):
            raise Aperiodic(f"{name} in the init block, other than in a size", tokens.span())
        tokens.at += 1


def _roles(tokens: Tokens, scope: Scope, target: str | None) -> dict[str, Role]:
    """The roles up to what follows them, and the definitions between them."""
    roles: dict[str, Role] = {}
    while tokens.kind != END and tokens.text not in PARTS:
        first = tokens.at
        try:
            if not tokens.accept(";") and not definition(tokens, scope):
                _role(tokens, scope, target, roles)
        except InputError as error:
            _go_on(tokens, scope, error, first)
    if not roles and not scope.mistakes:
        raise problem("LIT048", tokens.span(), expected="a role such as 'P0@cta 0 { … }'")
    return roles


def _go_on(tokens: Tokens, scope: Scope, error: InputError, first: int) -> None:
    """Keeps a mistake outside all blocks, or of a block that nothing closes, and goes on behind it."""
    if tokens.texts[first] == "include":
        raise error  # nobody knows what it would have declared
    declares = tokens.texts[first] in DEFINITIONS
    if declares:
        skip_statement(tokens, first)
    elif error.code not in OPEN:
        skip_section(tokens, first, PARTS | DEFINITIONS)
    scope.mistakes.keep(error, tokens, first, scope.names() if declares else None)
    tokens.at = max(tokens.at, first + 1)


def _header_words(tokens: Tokens, scope: Scope) -> None:
    """Definitions may stand before the init block too, so that array sizes can use them."""
    while tokens.kind != END:
        first = tokens.at
        try:
            if definition(tokens, scope):
                continue
        except InputError as error:
            _go_on(tokens, scope, error, first)
            continue
        if tokens.text == '"':
            raise problem("LIT009", tokens.span(), expected='"')
        if not tokens.accept(";"):
            words = ("model", "target", "const", "def", "include")
            hint = did_you_mean(tokens.text, words)
            expected = "quoted lines, model, target, const, or the init block"
            raise problem("LIT019", tokens.span(), found=tokens.found(), expected=expected, hint=hint)


def _role(tokens: Tokens, scope: Scope, target: str | None, roles: dict[str, Role]) -> None:
    at = tokens.at
    if tokens.kind == NAME and "." in tokens.text:
        raise tokens.unexpected("a role such as 'P0@cta 0 { … }'", "instructions stand inside a role")
    name = tokens.name("a role such as 'P0@cta 0 { … }', a condition or expect")
    if tokens.text not in ("@", "{"):
        tokens.at = at
        hint = did_you_mean(name, ("exists", "forall", "locations", "filter", "expect", "const", "def", "include"))
        raise tokens.unexpected("a role such as 'P0@cta 0 { … }', a condition or expect", hint)
    place = None
    try:
        if name in roles:
            raise problem("LIT047", tokens.span(at), name=name, hint="give every role one block")
        place = placement(tokens, scope, name, at, ("{",))
    except InputError as error:
        while tokens.text != "{":
            tokens.at += 1
            if tokens.kind == END or tokens.on_new_line():
                raise
        scope.mistakes.keep(error, tokens, at)
    inner = scope.for_role()
    labels: set[str] = set()
    body = _Statements(tokens, target).block(inner, labels, 0)
    if place is not None:
        roles[name] = Role(name, place, Body(body.steps, frozenset(labels)), inner.types)


class _Statements:
    """Parses statements; ``labels`` collects those of the enclosing role or loop body."""

    def __init__(self, tokens: Tokens, target: str | None) -> None:
        self._tokens = tokens
        self._target = target

    def block(self, scope: Scope, labels: set[str], depth: int) -> Body:
        """``{ statement … }``."""
        tokens = self._tokens
        if depth > MAX_NESTING:
            raise problem("LIT062", tokens.span(), expected=f"at most {MAX_NESTING} levels")
        opening = tokens.at
        hint = "a body stands in braces, a single statement too"
        if tokens.text in ("step", "by"):
            hint = "loops count by one: multiply the variable, or ask for k % 2 == 0"
        tokens.expect("{", hint=hint if depth else None)
        steps: list[Statement] = []
        while not tokens.accept("}"):
            if tokens.kind == END or tokens.text in PARTS or begins_role(tokens):
                raise self._unclosed(opening)
            first = tokens.at
            try:
                self._statement(scope, labels, depth, steps)
            except InputError as error:
                if error.code in OPEN:
                    raise
                skip_statement(tokens, first)
                declares = tokens.texts[first] in DEFINITIONS or tokens.texts[first][0] == "."
                scope.mistakes.keep(error, tokens, first, scope.names() if declares else None)
            except Unsupported:
                if not scope.mistakes:
                    raise
                skip_statement(tokens, first)
        return Body(tuple(steps))

    def _unclosed(self, opening: int) -> InputError:
        where = self._tokens.span(opening)
        code = "LIT012" if self._tokens.kind == END else "LIT055"
        return problem(
            code,
            self._tokens.span(),
            expected="'}'",
            hint=f"the block that opens at line {where.line} is not closed",
        )

    def _statement(self, scope: Scope, labels: set[str], depth: int, steps: list[Statement]) -> None:
        tokens = self._tokens
        text = tokens.text
        if text == ";":
            tokens.at += 1
        elif text == "{":
            steps.append(self.block(Scope(scope), labels, depth + 1))
        elif text == ".reg":
            registers(tokens, scope)
            tokens.semicolon()
        elif tokens.kind == NAME and tokens.texts[tokens.at + 1] == ":":
            self._label(labels, steps)
        elif text == "for" and tokens.kinds[tokens.at + 1] == NAME:
            steps.append(self._for(scope, depth))
        elif text == "if" and tokens.texts[tokens.at + 1] == "(":
            steps.append(self._if(scope, labels, depth))
        elif text == "for" and tokens.texts[tokens.at + 1] == "(":
            raise problem("LIT011", tokens.span(tokens.at + 1), found="'('", expected="for NAME in LOW..HIGH { … }")
        elif text == "if":
            raise problem(
                "LIT011", tokens.span(tokens.at + 1), found="a condition without parentheses", expected="if (…) { … }"
            )
        elif text == "const" and tokens.kinds[tokens.at + 1] == NAME:
            self._const(scope, steps)
            tokens.semicolon()
        elif text in ASSEMBLY and tokens.texts[tokens.at + 1] in ("volatile", "__volatile__", "("):
            raise tokens.unexpected("a PTX instruction", OF_ASSEMBLY)
        elif text in FUNCTIONS and tokens.texts[tokens.at + 1] == "(":
            raise tokens.unexpected("a PTX instruction", f"{text} of CUDA C++ is {FUNCTIONS[text]} in PTX")
        elif text == "while" and tokens.texts[tokens.at + 1] == "(":
            raise tokens.unexpected("a statement", "a loop is for k in 0..N { }, or a label and a branch")
        elif text == "else":
            raise tokens.unexpected("a statement", "else follows the closing brace of an if")
        else:
            steps.append(operation(tokens, scope, self._target))
            tokens.semicolon()

    def _label(self, labels: set[str], steps: list[Statement]) -> None:
        tokens = self._tokens
        span = tokens.span()
        name = tokens.name("a label")
        tokens.expect(":")
        if name in labels:
            raise problem("LIT053", span, name=name)
        labels.add(name)
        steps.append(Mark(name, span))

    def _for(self, scope: Scope, depth: int) -> For:
        tokens = self._tokens
        first = tokens.at
        tokens.at += 1
        at = tokens.at
        variable = tokens.name("a loop variable")
        tokens.expect("in")
        bounds = tokens.at
        self._unnamed(scope)
        low = self._before(scope, first, "..")
        tokens.expect("..", "'..' and the bound that is not reached")
        high = self._before(scope, first, "{")
        span = tokens.span_since(first)
        plain = NAME not in tokens.kinds[bounds : tokens.at]
        if registers_in(low) or registers_in(high):
            where = tokens.span_since(bounds)
            raise problem("LIT016", where, what="a bound of a for loop", hint="write a loop of registers with a branch")
        inner = Scope(scope)
        inner.declare_symbol(variable, tokens.span(at))
        labels: set[str] = set()
        body = self.block(inner, labels, depth + 1)
        return For(variable, low, high, Body(body.steps, frozenset(labels)), span, plain)

    def _unnamed(self, scope: Scope) -> None:
        """Declares ``any`` where it stands in the bounds of a loop: the same number in all loops of the file."""
        tokens = self._tokens
        at = tokens.at
        while tokens.texts[at] not in (ANY, "{", "}", ";", ""):
            at += 1
        file = scope.file()
        if tokens.texts[at] == ANY and file.given is not None and not scope.declares(ANY):
            any_number(file, ANY, tokens.span(at))

    def _if(self, scope: Scope, labels: set[str], depth: int) -> If:
        tokens = self._tokens
        first = tokens.at
        tokens.at += 1
        condition = self._before(scope, first, "{", in_parentheses=True)
        span = tokens.span_since(first)
        text = tokens.raw_since(first)
        then = self.block(Scope(scope), labels, depth + 1)
        otherwise = EMPTY
        if tokens.accept("else"):
            if tokens.text == "if":
                if depth > MAX_NESTING:
                    raise problem("LIT062", tokens.span(), expected=f"at most {MAX_NESTING} levels")
                otherwise = Body((self._if(scope, labels, depth + 1),))
            else:
                otherwise = self.block(Scope(scope), labels, depth + 1)
        return If(condition, then, otherwise, span, text)

    def _before(self, scope: Scope, first: int, stop: str, *, in_parentheses: bool = False) -> Expr:
        """An expression of the head of a block. Where it is wrong, the block is read for its own mistakes."""
        tokens = self._tokens
        try:
            if not in_parentheses:
                return expression(tokens, scope)
            tokens.expect("(")
            value = expression(tokens, scope)
            tokens.expect(")")
        except InputError as error:
            while tokens.text != stop:
                tokens.at += 1
                if tokens.kind == END or tokens.on_new_line():
                    raise
            scope.mistakes.keep(error, tokens, first)
            return Const(0)
        return value

    def _const(self, scope: Scope, steps: list[Statement]) -> None:
        tokens = self._tokens
        tokens.at += 1
        while True:
            at = tokens.at
            name = tokens.name("the name of a constant")
            tokens.expect("=")
            value = expression(tokens, scope)
            span: Span = tokens.span_since(at)
            if registers_in(value):
                raise problem("LIT016", span, what="the value of a const", hint="use a register: mov")
            if isinstance(value, Const):
                scope.declare_constant(name, value.value, tokens.span(at))
            else:
                scope.declare_symbol(name, tokens.span(at))
                steps.append(Define(name, value, span))
            if not tokens.accept(","):
                return
