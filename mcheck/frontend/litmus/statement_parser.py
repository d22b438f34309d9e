"""The parser of a role's block: ``for``, ``if``, ``const``, ``.reg``, labels and instructions."""

from __future__ import annotations

from mcheck.base.errors import InputError, Span, Unsupported
from mcheck.frontend.litmus.cancel_requests import follow_outcomes, is_request
from mcheck.frontend.litmus.codes import problem
from mcheck.frontend.litmus.conditions import PARTS
from mcheck.frontend.litmus.declarations import declare_unnamed_parameter, parse_registers
from mcheck.frontend.litmus.definitions import DEFINITIONS
from mcheck.frontend.litmus.error_recovery import UNCLOSED, begins_role, skip_statement
from mcheck.frontend.litmus.expressions import parse_expression, reads_register
from mcheck.frontend.litmus.instructions import parse_operation
from mcheck.frontend.litmus.lexer import END, NAME, Tokens
from mcheck.frontend.litmus.scope import Scope
from mcheck.frontend.litmus.statements import Body, Define, For, If, Mark, Statement
from mcheck.frontend.litmus.tensor_memory import is_tensor_memory, place_accesses
from mcheck.ir.expr import Const, Expr

MAX_NESTING = 50
EMPTY = Body(())
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


class StatementParser:
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
            error = tokens.unexpected("a PTX instruction", ASSEMBLY_HINT)
            while tokens.kind != END and not (tokens.text == ")" and tokens.texts[tokens.at + 1] == ";"):
                tokens.at += 1  # the semicolons in its quotes end no statement
            raise error
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
