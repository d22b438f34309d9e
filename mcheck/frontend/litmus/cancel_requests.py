"""Requests of ``clusterlaunchcontrol.try_cancel`` in sketches: both outcomes are followed (PTX ISA 9.7.13.17).

A request becomes a branch on a value of which nothing is said: it gets a cluster, or none, and once a thread has got
none it gets none later either. What it gets is a copy of a response out of an object that holds all of them. The
clusters are those behind the declared ones: the k-th request of a thread gets the one that lies k times as many CTAs as
are declared behind its own, so that no two requests get the same if one thread of each cluster asks. Which clusters
they are in truth nobody knows; that they are these is an assumption of the answer. In a role with labels, where
requests may be repeated without end, the grid has so many clusters that a thread gets at most ``IN_LOOPS``.
"""

from __future__ import annotations

from mcheck.base.records import replace
from mcheck.frontend.litmus.scope import Scope
from mcheck.frontend.litmus.statements import Body, For, If, Mark, Statement, Step
from mcheck.ir.expr import Binary, Const, Expr, Name, Reg, Special
from mcheck.ir.memory import CANCEL_RESPONSES, MemObject
from mcheck.ir.ops import Alu, BulkCopy, Op

WORDS = 4
COUNT = 1024
"""Responses that the object holds: the one at a number is that with this CTA, the first that there is none."""

IN_LOOPS = 3

GUESS, NEXT, END = Reg("cancel.guess"), Reg("cancel.next"), Reg("cancel.end")
"""Registers that no file can name: whether a request gets a cluster, the CTA that it would get, and the first that it
cannot get.
"""


def declare_responses(scope: Scope) -> None:
    """Declare the object that holds the responses."""
    content = b"".join(k.to_bytes(4, "little") + bytes(8) + int(k > 0).to_bytes(4, "little") for k in range(COUNT))
    scope.objects[CANCEL_RESPONSES] = MemObject(
        name=CANCEL_RESPONSES, space="global", elem="b32", elem_size=4, dims=(COUNT, WORDS), align=16,
        size=len(content), init=content,
    )  # fmt: skip


def is_request(op: Op) -> bool:
    """Whether this is a request, as the instruction table decodes it."""
    return isinstance(op, BulkCopy) and isinstance(op.src, Name) and op.src.name == CANCEL_RESPONSES


def follow_outcomes(step: Step) -> tuple[Statement, ...]:
    """The statements of a request."""
    op, span = step.op, step.op.span
    assert isinstance(op, BulkCopy)
    assert span is not None
    guard, op = op.guard, replace(op, guard=None)

    def computed(name: str, dst: Reg, *srcs: Expr) -> Step:
        return Step(Alu(op=name, type="u32", dsts=(dst,), srcs=srcs, span=span, text=op.text, section=op.section))

    def none() -> Body:
        return Body((computed("mov", NEXT, Const(COUNT)), Step(op)))

    granted = Binary("+", Name(CANCEL_RESPONSES), Binary("*", NEXT, Const(4 * WORDS)))
    got = Body((Step(replace(op, src=granted)), computed("add", NEXT, NEXT, Special("nctaid.x"))))
    wins = Binary("==", Binary("&", GUESS, Const(1)), Const(1))
    either = Body((computed("opaque", GUESS), If(wins, got, none(), span, op.text)))
    asked = If(Binary("<", NEXT, END), either, none(), span, op.text)
    if guard is None:
        return (asked,)
    held = Binary("==", guard.reg, Const(int(not guard.negated)))
    return (If(held, Body((asked,)), Body(()), span, op.text),)


def begin(body: Body) -> Body:
    """The body of a role that has requests, with what is to be set before the first."""
    first = Binary("-", Special("ctaid.x"), Special("cluster_ctarank"))
    most = Binary("+", first, Binary("*", Special("nctaid.x"), Const(IN_LOOPS + 1)))
    end: Expr = most if _has_labels(body) else Const(COUNT)
    start = Alu(op="add", type="u32", dsts=(NEXT,), srcs=(first, Special("nctaid.x")))
    return Body((Step(start), Step(Alu(op="mov", type="u32", dsts=(END,), srcs=(end,))), *body.steps), body.labels)


def _has_labels(statement: Statement) -> bool:
    match statement:
        case Mark():
            return True
        case For():
            return _has_labels(statement.body)
        case If():
            return _has_labels(statement.then) or _has_labels(statement.otherwise)
        case Body():
            return any(map(_has_labels, statement.steps))
    return False
