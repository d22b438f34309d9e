"""The text of the sketch of an executed cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from mcheck.base.errors import InputError, InternalError, Span, Unsupported
from mcheck.frontend.ptx.module import SourceLine
from mcheck.ir import ops
from mcheck.ir.ops import Op
from mcheck.simt.sketches.formulas import Number, Writer, ring_stages
from mcheck.simt.sketches.objects import declare_objects
from mcheck.simt.sketches.roles import Role, find_roles
from mcheck.simt.sketches.rolling import Line, Loop, Node, When
from mcheck.simt.sketches.spelling import NUMBER, OFFSET
from mcheck.simt.trace_extraction import ClusterTrace

Sources = Mapping[tuple[int, int], SourceLine]
WIDTH = 120
STUCK = "a wait at the end of a role did not end in the order that was followed; what comes after it is not known"


def emit_sketch(way: ClusterTrace, sources: Sources, model: str | None = None) -> str:
    """The sketch of one path of a cluster, readable by ``mcheck check``; ``model`` is what it names, if anything.

    Raises ``Unsupported``, naming the line of the module, for operations that a sketch cannot express.
    """
    program = way.program
    for op in program.operations:
        if op.text.startswith("clusterlaunchcontrol."):
            where = f"line {op.span.line}: " if op.span is not None else ""
            raise Unsupported(f"{where}a sketch does not say which clusters a request gets")
    waits = [_ends_blocked(thread.code) for thread in program.threads]
    known = declare_objects(program)
    found = find_roles(program, known)
    writer = Writer(_most_common_stages(found))
    body = [line for role in found for line in _role(role, writer, sources, program.clustered)]
    head = [f"PTX {program.name}", f'"The synchronisation of {program.name}, as followed in {_file(program.path)}"']
    if model is not None:
        head.append(f"model {model}")
    if program.target is not None:
        head.append(f"target {program.target}")
    if writer.stages is not None:
        head += [f"const STAGES = {writer.stages};", "def stage(k) = k % STAGES;", "def parity(k) = k / STAGES % 2;"]
    said = [*way.assumptions, *(gap.reason for gap in way.gaps), *([STUCK] if any(waits) else [])]
    notes = [f"// {text}" for text in dict.fromkeys(said)]
    text = "\n".join([*head, *notes, "{", *known.declaration_lines(), "}", *body]) + "\n"
    _check(text)
    return text


def _ends_blocked(code: Sequence[Op]) -> bool:
    """Whether a thread ends at a blocked wait; raises ``Unsupported`` where it was lost elsewhere."""
    for before, op in pairwise((None, *code)):
        if isinstance(op, ops.UnknownContinuation):
            if isinstance(before, ops.Await | ops.Barrier | ops.ClusterBarrier | ops.WarpSync | ops.Collective):
                return True
            where = f"line {op.span.line}: " if op.span is not None else ""
            raise Unsupported(f"{where}the rest of the thread is unknown: {op.reason}")
    return False


def _check(text: str) -> None:
    """Check that the emitted text parses."""
    from mcheck.frontend.litmus import parse

    try:
        parse(text, "<sketch>")
    except InputError as error:
        if error.code in ("LIT080", "LIT081", "LIT082", "LIT083"):
            raise Unsupported(f"the sketch would be too large: {error.message}") from None
        where = "" if error.span is None else text.splitlines()[error.span.line - 1]
        raise InternalError(f"the sketch does not parse: {error.message}: {where}") from error


def _most_common_stages(found: Sequence[Role]) -> int | None:
    """The most frequent number of stages of ring formulas."""
    count: Counter[int] = Counter(n for role in found for number in _numbers(role.code) for n in ring_stages(number))
    common = count.most_common(1)
    return common[0][0] if common and common[0][1] > 1 else None


def _numbers(code: Sequence[Node]) -> Iterator[Number]:
    for node in code:
        if not isinstance(node, Line):
            yield from _numbers(node.body)
        else:
            yield from node.numbers


def _role(role: Role, writer: Writer, sources: Sources, clustered: bool) -> Iterator[str]:
    places = (["cluster 0"] if clustered else []) + [f"cta {_ranges(role.ranks)}", f"warp {_ranges(role.warps)}"]
    if role.lanes != tuple(range(32)):
        places.append(f"lane {_ranges(role.lanes)}")
    yield f"{role.name}@{', '.join(places)} {{"
    yield from _code(role.code, writer, sources, "  ")
    yield "}"


def _ranges(numbers: Sequence[int]) -> str:
    out: list[list[int]] = []
    for n in sorted(numbers):
        if out and out[-1][1] == n:
            out[-1][1] = n + 1
        else:
            out.append([n, n + 1])
    return ", ".join(str(a) if b == a + 1 else f"{a}..{b}" for a, b in out)


def _code(code: Sequence[Node], writer: Writer, sources: Sources, indent: str) -> Iterator[str]:
    for node in code:
        if isinstance(node, Loop):
            yield f"{indent}for {node.var} in 0..{node.count} {{"
            yield from _code(node.body, writer, sources, indent + "  ")
            yield f"{indent}}}"
            continue
        if isinstance(node, When):
            yield f"{indent}if ({_condition(node.lanes)}) {{"
            yield from _code(node.body, writer, sources, indent + "  ")
            yield f"{indent}}}"
            continue
        text = indent + _text(node.text, node.numbers, writer)
        said = _place(node.span, sources)
        yield f"{text}{' ' * max(2, WIDTH - 30 - len(text))}// {said}" if said else text


def _condition(lanes: tuple[int, ...]) -> str:
    """The condition that a lane is one of these."""
    low, high = lanes[0], lanes[-1]
    if len(lanes) == 1:
        return f"%laneid == {low}"
    if high - low + 1 == len(lanes):
        parts = ([f"%laneid >= {low}"] if low else []) + ([f"%laneid < {high + 1}"] if high < 31 else [])
        return " && ".join(parts)
    return f"{sum(1 << lane for lane in lanes):#x} >> %laneid & 1"


def _text(parts: Sequence[str], numbers: Sequence[Number], writer: Writer) -> str:
    rest = iter(numbers)
    out: list[str] = []
    for part in parts:
        if part == NUMBER:
            out.append(writer.text(next(rest)))
        elif part == OFFSET:
            offset = next(rest)
            out.append("" if offset == 0 else f" + {writer.text(offset)}".replace("+ -", "- "))
        else:
            out.append(part)
    return "".join(out)


def _place(span: Span | None, sources: Sources) -> str:
    if span is None:
        return ""
    source = sources.get((span.line, span.column))
    return str(span.line) if source is None else f"{span.line}, {_file(source.path)}:{source.line}"


def _file(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2]
