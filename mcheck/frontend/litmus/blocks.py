"""The parser of the block form: a block of PTX statements per role.

``name@cta 0, warp 1..5 { … }`` with ``for``, ``if``, ``const``, ``.reg``, labels and instructions. Loops of constant
bounds are unrolled and branches on registers lowered by ``mcheck.frontend.litmus.unroll``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from mcheck.base.errors import InputError, Span, Unsupported
from mcheck.frontend.litmus.binding import Role, bind_program
from mcheck.frontend.litmus.cancel_requests import begin, declare_responses, follow_outcomes, is_request
from mcheck.frontend.litmus.codes import problem, suggest
from mcheck.frontend.litmus.conditions import PARTS, parse_tail
from mcheck.frontend.litmus.declarations import declare_unnamed_parameter, parse_init_block, parse_registers
from mcheck.frontend.litmus.definitions import DEFINITIONS, parse_definition
from mcheck.frontend.litmus.error_recovery import UNCLOSED, begins_role, skip_section, skip_statement
from mcheck.frontend.litmus.expressions import parse_expression, reads_register
from mcheck.frontend.litmus.header import Header
from mcheck.frontend.litmus.initial import Initial
from mcheck.frontend.litmus.instructions import parse_operation
from mcheck.frontend.litmus.lexer import END, NAME, NUMBER, Tokens
from mcheck.frontend.litmus.placement import parse_placement
from mcheck.frontend.litmus.scope import Scope
from mcheck.frontend.litmus.smallest_number import build_smallest
from mcheck.frontend.litmus.statements import Body, Define, For, If, Mark, Statement
from mcheck.frontend.litmus.tensor_memory import is_tensor_memory, place_accesses
from mcheck.frontend.litmus.unroll import Counting
from mcheck.ir.cta_family import CtaFamily, NotAlike
from mcheck.ir.expr import Binary, Const, Expr, Name
from mcheck.ir.loop_unrolling import Aperiodic, LoopPeriodicity
from mcheck.ir.program import Program, ShortenedLoops

MAX_NESTING = 50
REQUEST = "clusterlaunchcontrol.try_cancel"
EMPTY = Body(())
KEPT = 8
"""So many instances of a file are kept: small ones are asked for several times."""


def parse_blocks(
    head: Header, end: int, size: int | None = None, *, every: bool = False, counting: Counting | None = None
) -> Program:
    """Parse the roles of a file whose init block ends at offset ``end``.

    A constant that is ``any`` has the value ``size``. Without ``size`` the file is ``Unsupported``, unless the question
    is about ``every`` number: then the program can build its instances (``Program.sized``). With ``every``, a program
    whose loops have many iterations comes with as few of them as will do, and can be built with more
    (``Program.long``).
    """
    if size is not None or not every:
        return _parse_with(head, end, 1 if size is None else size, size, every=every, counting=counting)
    return build_smallest(lambda k: _parse_with(head, end, k, None, every=every, counting=counting), 1)[1]


def _parse_with(
    head: Header, end: int, given: int, size: int | None, *, every: bool, counting: Counting | None
) -> Program:
    """The program with this value of a constant that is ``any``."""
    scope = Scope()
    scope.given = given
    initial = Initial()
    with scope.mistakes:
        tokens, roles = _declared_roles(head, end, scope, initial)
        ending = parse_tail(tokens, scope.for_tail())
    if (
        every
        and scope.parameter is None
        and counting is None
        and not scope.mistakes
        and (long := _find_long_loops(roles, scope))
    ):
        return _shorten_loops(head, end, long)
    program = bind_program(head, scope, initial, list(roles.values()), ending, dialect=False, counting=counting)
    if scope.parameter is None or size is not None:
        return program
    name, span = scope.parameter
    if not every:
        raise Unsupported(f"{name} is `any`: only `mcheck check` supports parametric programs", span)
    return replace(
        program, parameter=name, instance=_Instances(head, end).program, rounds=partial(find_rounds, head, end),
        early_rounds=partial(find_rounds, head, end, early=True), family=partial(find_cta_family, head, end),
    )  # fmt: skip


def parse_role_bodies(head: Header, end: int) -> dict[str, Body]:
    """The statements of each role as they are written, bound to no thread; raises ``InputError``."""

    def parse(number: int) -> dict[str, Body]:
        scope = Scope()
        scope.given = number
        with scope.mistakes:
            _, roles = _declared_roles(head, end, scope, Initial())
        return {name: role.body for name, role in roles.items()}

    return build_smallest(parse, 2)[1]


def _declared_roles(head: Header, end: int, scope: Scope, initial: Initial) -> tuple[Tokens, dict[str, Role]]:
    """The roles of a file, whose definitions and declarations go into ``scope``, and the tokens after them."""
    source = head.source
    _declare(head, end, scope, initial)
    tokens = Tokens(source, end + 1, len(source.clean))
    return tokens, _roles(tokens, scope, head.target)


def _declare(head: Header, end: int, scope: Scope, initial: Initial) -> None:
    """Put what stands before the roles into the scope: definitions, and the declarations of the init block."""
    source = head.source
    _define(head, scope)
    parse_init_block(Tokens(source, head.body, end + 1), scope, initial)
    if REQUEST in source.clean:
        declare_responses(scope)


def _define(head: Header, scope: Scope) -> None:
    """Put the definitions before the init block into the scope."""
    if head.words:
        _header_words(Tokens(head.source, 0, head.body - 1, head.words), scope)


class _Instances:
    """The instances of a parametric file, by the value of its parameter. The roles are parsed once, so that all
    instances share their operations; a value for which that fails is parsed by itself, which reports the error.
    """

    def __init__(self, head: Header, end: int) -> None:
        self._head, self._end = head, end
        self._roles: tuple[list[Role], int] | None = None
        self._bases: tuple[int, ...] = ()
        self._tried = False
        self._kept: dict[int, Program] = {}

    def program(self, size: int) -> Program:
        """The instance with a value of the parameter."""
        found = self._kept.pop(size, None) or self._build(size)
        self._kept[size] = found
        if len(self._kept) > KEPT:
            del self._kept[next(iter(self._kept))]
        return found

    def _build(self, size: int) -> Program:
        alone = partial(parse_blocks, self._head, self._end, size, counting=Counting())
        try:
            return self._bound(size) or alone()
        except InputError:
            return alone()

    def _bound(self, size: int) -> Program | None:
        head, source = self._head, self._head.source
        scope, initial = _declared(head, self._end, size)
        if not self._tried:
            self._tried = True
            self._roles = self._read()
        if self._roles is None or scope.parameter is None or scope.mistakes:
            return None
        roles, behind = self._roles
        ending = parse_tail(Tokens(source, behind, len(source.clean)), scope.for_tail())
        known = {scope.parameter[0]: size}
        found = bind_program(head, scope, initial, roles, ending, dialect=False, counting=Counting(), known=known)
        bases = tuple(i.base for i in found.memory.instances)
        if self._bases not in ((), bases):  # the statements have memoized other addresses
            self._roles = None
            return None
        self._bases = bases
        return found

    def _read(self) -> tuple[list[Role], int] | None:
        """The roles with the parameter as a name, and the offset at which they end."""
        try:
            scope, tokens, roles = _parse_symbolically(self._head, self._end)
        except (InputError, Aperiodic, Unsupported):
            return None
        if scope.mistakes or _is_place(roles):  # the parameter stands where a number has to
            return None
        return list(roles.values()), tokens.starts[tokens.at]


def _find_long_loops(roles: dict[str, Role], scope: Scope) -> LoopPeriodicity | None:
    """The periodicity of roles whose loops have many iterations, if they are periodic."""
    from mcheck.frontend.litmus.periodicity import find_periodic_loops  # only loops need it

    try:
        found = find_periodic_loops(roles, scope.objects, None)
    except Aperiodic:
        return None
    counts = [cuts.count - cuts.behind for cuts in found.loops.values() if cuts.count is not None]
    if max(counts) > 2 * min(counts):  # loops that go on long after the others have ended do not repeat together
        return None
    return found if min(counts) > found.ahead + 3 * found.period else None


def _shorten_loops(head: Header, end: int, found: LoopPeriodicity) -> Program:
    """The program with one period of its long loops; the iterations before it are left out."""

    def without(kept: int, left_out: int) -> Program:
        return parse_blocks(head, end, counting=Counting(found.loops, kept, left_out))

    few = without(found.ahead, found.left_out(found.ahead, found.period))
    return replace(few, shortened=ShortenedLoops(found, without, partial(parse_blocks, head, end)))


def find_rounds(head: Header, end: int, *, early: bool = False) -> LoopPeriodicity:
    """The periodicity of the roles in the parameter of the file; raises ``Aperiodic`` if there is none.

    ``early``: in the instances before any comparison changes its result.

    The parameter stays a name in the roles. In the init block it is a number, and may occur in sizes only.
    """
    from mcheck.frontend.litmus.periodicity import find_periodic_loops

    try:
        scope, _, roles = _parse_symbolically(head, end)
    except InputError as error:
        raise Aperiodic(error.message, error.span) from None
    if scope.mistakes or _is_place(roles):
        raise Aperiodic("the number stands where a constant has to, as in the place of a role")
    assert scope.parameter is not None, "asked of files that have such a constant"
    return find_periodic_loops(roles, scope.objects, scope.parameter[0], early=early)


def find_cta_family(head: Header, end: int) -> CtaFamily:
    """The CTAs of a file that are alike, as many as its parameter says. Raises ``NotAlike``."""
    from mcheck.frontend.litmus.cta_families import read_family

    try:
        scope, _, roles = _parse_symbolically(head, end)
        (one, initial), (two, _) = (_declared(head, end, number) for number in (1, 2))
    except InputError as error:
        raise NotAlike(error.message, error.span) from None
    except Aperiodic as error:
        raise NotAlike(str(error)) from None
    if scope.mistakes or one.mistakes:
        raise NotAlike("the number stands where a constant has to")
    if initial.registers:
        raise NotAlike("registers have initial values", initial.registers[0].span)
    if any(value < 0 for value in one.constants.values()):
        raise NotAlike("a constant is negative")  # sizes then may not grow ever faster
    assert scope.parameter is not None, "asked of files that have such a constant"
    return read_family(list(roles.values()), one.objects, two.objects, scope.parameter[0])


def _declared(head: Header, end: int, number: int) -> tuple[Scope, Initial]:
    """What the init block declares for a value of the parameter."""
    scope, initial = Scope(), Initial()
    scope.given = number
    _declare(head, end, scope, initial)
    return scope, initial


def _is_place(roles: Mapping[str, Role]) -> bool:
    """Whether the place of a role depends on the parameter, which is a name in it."""
    return any(role.placement.ends for role in roles.values())


def _parse_symbolically(head: Header, end: int) -> tuple[Scope, Tokens, dict[str, Role]]:
    """The scope and the roles of a file, with its parameter as a name, and the tokens after them."""
    source = head.source
    scope = Scope()
    scope.given = 1
    scope.symbolic = True
    _define(head, scope)
    sizes = Tokens(source, head.body, end + 1)
    if scope.parameter is not None:
        _require_only_in_sizes(sizes, *scope.parameter)
    for name, value in scope.derived.items():
        _require_only_in_sizes(sizes, name, None, plain=_is_sum_of_products(value))
    numbered, _ = _declared(head, end, 1)
    scope.objects.update(numbered.objects)
    scope.types.update(numbered.types)
    tokens = Tokens(source, end + 1, len(source.clean))
    return scope, tokens, _roles(tokens, scope, head.target)


ASSEMBLY = frozenset(("asm", "__asm", "__asm__"))
ASSEMBLY_HINT = (
    "write the PTX instructions inside the quotes of the asm statement, with names instead of %0; "
    "to check a whole kernel, compile it with nvcc -ptx"
)
CUDA_FUNCTIONS = {
    "__syncthreads": "bar.sync 0",
    "__syncwarp": "bar.warp.sync 0xffffffff",
    "__threadfence": "fence.acq_rel.gpu",
    "__threadfence_block": "fence.acq_rel.cta",
    "__threadfence_system": "fence.acq_rel.sys",
}
"""PTX equivalents of common CUDA C++ functions."""

GROWING = frozenset(("*", "+", "(", ")"))
"""What may occur beside the parameter in a size: such a size grows by a constant or increasing amount."""


def _is_sum_of_products(value: Expr) -> bool:
    match value:
        case Binary("+" | "*", left, right):
            return _is_sum_of_products(left) and _is_sum_of_products(right)
    return isinstance(value, Name) or (isinstance(value, Const) and value.value >= 0)


def _require_only_in_sizes(tokens: Tokens, name: str, declared: Span | None, *, plain: bool = True) -> None:
    """Raise ``Aperiodic`` if a name occurs in an init block other than in the first size of an object, where only sums
    and products are allowed, and of which the name itself must be made (``plain``).
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
                raise Aperiodic(f"{name} in a size that is not computed by + and * alone", tokens.span(inside))
            inside = None
        elif text == "include" or (text == name and inside is None and tokens.span() != declared):
            raise Aperiodic(f"{name} in the init block outside of a size", tokens.span())
        tokens.at += 1


def _roles(tokens: Tokens, scope: Scope, target: str | None) -> dict[str, Role]:
    """Parse the roles, and the definitions between them."""
    roles: dict[str, Role] = {}
    while tokens.kind != END and tokens.text not in PARTS:
        first = tokens.at
        try:
            if not tokens.accept(";") and not parse_definition(tokens, scope):
                _role(tokens, scope, target, roles)
        except InputError as error:
            _recover(tokens, scope, error, first)
    if not roles and not scope.mistakes:
        raise problem("LIT048", tokens.span(), expected="a role such as 'P0@cta 0 { … }'")
    return roles


def _recover(tokens: Tokens, scope: Scope, error: InputError, first: int) -> None:
    """Record an error outside all blocks, or in an unclosed block, and continue after it."""
    if tokens.texts[first] == "include":
        raise error  # what it would have declared is not known
    declares = tokens.texts[first] in DEFINITIONS
    if declares:
        skip_statement(tokens, first)
    elif error.code not in UNCLOSED:
        skip_section(tokens, first, PARTS | DEFINITIONS)
    scope.mistakes.record(error, tokens, first, scope.names() if declares else None)
    tokens.at = max(tokens.at, first + 1)


def _header_words(tokens: Tokens, scope: Scope) -> None:
    """Parse the definitions before the init block, which array sizes can use."""
    while tokens.kind != END:
        first = tokens.at
        try:
            if parse_definition(tokens, scope):
                continue
        except InputError as error:
            _recover(tokens, scope, error, first)
            continue
        if tokens.text == '"':
            raise problem("LIT009", tokens.span(), expected='"')
        if not tokens.accept(";"):
            words = ("model", "target", "const", "def", "include")
            hint = suggest(tokens.text, words)
            expected = "quoted lines, model, target, const, or the init block"
            raise problem("LIT019", tokens.span(), found=tokens.found(), expected=expected, hint=hint)


def _role(tokens: Tokens, scope: Scope, target: str | None, roles: dict[str, Role]) -> None:
    at = tokens.at
    if tokens.kind == NAME and "." in tokens.text:
        raise tokens.unexpected("a role such as 'P0@cta 0 { … }'", "write instructions inside a role")
    name = tokens.name("a role such as 'P0@cta 0 { … }', a condition or expect")
    if tokens.text not in ("@", "{"):
        tokens.at = at
        hint = suggest(name, ("exists", "forall", "locations", "filter", "expect", "const", "def", "include"))
        raise tokens.unexpected("a role such as 'P0@cta 0 { … }', a condition or expect", hint)
    place = None
    try:
        if name in roles:
            raise problem("LIT047", tokens.span(at), name=name, hint="write one block per role")
        place = parse_placement(tokens, scope, name, at, ("{",))
    except InputError as error:
        while tokens.text != "{":
            tokens.at += 1
            if tokens.kind == END or tokens.on_new_line():
                raise
        scope.mistakes.record(error, tokens, at)
    inner = scope.for_role()
    labels: set[str] = set()
    statements = _Statements(tokens, target)
    body = statements.block(inner, labels, 0)
    if place is not None:
        body = Body(body.steps, frozenset(labels))
        roles[name] = Role(name, place, begin(body) if statements.requests else body, inner.types)


class _Statements:
    """The parser of statements; ``labels`` collects the labels of the enclosing role or loop body."""

    def __init__(self, tokens: Tokens, target: str | None) -> None:
        self._tokens = tokens
        self._target = target
        self.requests = False
        """Whether a cluster is asked for (``mcheck.frontend.litmus.cancel_requests``)."""

    def block(self, scope: Scope, labels: set[str], depth: int) -> Body:
        """``{ statement … }``."""
        tokens = self._tokens
        if depth > MAX_NESTING:
            raise problem("LIT062", tokens.span(), expected=f"at most {MAX_NESTING} levels")
        opening = tokens.at
        hint = "write the body in braces, even a single statement"
        if tokens.text in ("step", "by"):
            hint = "loops count by one: multiply the variable, or test k % 2 == 0"
        tokens.expect("{", hint=hint if depth else None)
        steps: list[Statement] = []
        while not tokens.accept("}"):
            if tokens.kind == END or tokens.text in PARTS or begins_role(tokens):
                raise self._unclosed(opening)
            first = tokens.at
            try:
                self._statement(scope, labels, depth, steps)
            except InputError as error:
                if error.code in UNCLOSED:
                    raise
                skip_statement(tokens, first)
                declares = tokens.texts[first] in DEFINITIONS or tokens.texts[first][0] == "."
                scope.mistakes.record(error, tokens, first, scope.names() if declares else None)
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
            hint=f"the block that starts in line {where.line} is not closed",
        )

    def _statement(self, scope: Scope, labels: set[str], depth: int, steps: list[Statement]) -> None:
        tokens = self._tokens
        text = tokens.text
        if text == ";":
            tokens.at += 1
        elif text == "{":
            steps.append(self.block(Scope(scope), labels, depth + 1))
        elif text == ".reg":
            parse_registers(tokens, scope)
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
            raise tokens.unexpected("a PTX instruction", ASSEMBLY_HINT)
        elif text in CUDA_FUNCTIONS and tokens.texts[tokens.at + 1] == "(":
            raise tokens.unexpected("a PTX instruction", f"{text} of CUDA C++ is {CUDA_FUNCTIONS[text]} in PTX")
        elif text == "while" and tokens.texts[tokens.at + 1] == "(":
            raise tokens.unexpected("a statement", "write a loop as for k in 0..N { }, or with a label and a branch")
        elif text == "else":
            raise tokens.unexpected("a statement", "else must follow the closing brace of an if")
        else:
            step = parse_operation(tokens, scope, self._target)
            if is_request(step.op):
                self.requests = True
                steps += follow_outcomes(step)
            elif is_tensor_memory(step.op):
                steps += place_accesses(step, scope)
            else:
                steps.append(step)
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
        declare_unnamed_parameter(tokens, scope, ("{", "}", ";"))
        low = self._before(scope, first, "..")
        tokens.expect("..", "'..' and the exclusive upper bound")
        high = self._before(scope, first, "{")
        span = tokens.span_since(first)
        plain = NAME not in tokens.kinds[bounds : tokens.at]
        if reads_register(low) or reads_register(high):
            where = tokens.span_since(bounds)
            raise problem(
                "LIT016", where, what="a bound of a for loop", hint="to loop over a register, use a label and a branch"
            )
        inner = Scope(scope)
        inner.declare_symbol(variable, tokens.span(at))
        labels: set[str] = set()
        body = self.block(inner, labels, depth + 1)
        return For(variable, low, high, Body(body.steps, frozenset(labels)), span, plain)

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
        """Parse an expression in the head of a block. If it is wrong, the block is still parsed for further errors."""
        tokens = self._tokens
        try:
            if not in_parentheses:
                return parse_expression(tokens, scope)
            tokens.expect("(")
            value = parse_expression(tokens, scope)
            tokens.expect(")")
        except InputError as error:
            while tokens.text != stop:
                tokens.at += 1
                if tokens.kind == END or tokens.on_new_line():
                    raise
            scope.mistakes.record(error, tokens, first)
            return Const(0)
        return value

    def _const(self, scope: Scope, steps: list[Statement]) -> None:
        tokens = self._tokens
        tokens.at += 1
        while True:
            at = tokens.at
            name = tokens.name("the name of a constant")
            tokens.expect("=")
            value = parse_expression(tokens, scope)
            span: Span = tokens.span_since(at)
            if reads_register(value):
                raise problem("LIT016", span, what="the value of a const", hint="use mov to set a register")
            if isinstance(value, Const):
                scope.declare_constant(name, value.value, tokens.span(at))
            else:
                scope.declare_symbol(name, tokens.span(at))
                steps.append(Define(name, value, span))
            if not tokens.accept(","):
                return
