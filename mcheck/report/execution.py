"""The reports of ``mcheck exec``: one execution as text, with changed bytes marked, and as JSON."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator

from mcheck.answers.number_text import UNKNOWN, format_number
from mcheck.engines.concrete.result import Execution, Object
from mcheck.report import finding as finding_report
from mcheck.report.formats.json_ import header
from mcheck.report.lines import Line, Segment

ROW = 16
_CODES = {"u8": "B", "s8": "b", "u16": "<H", "s16": "<h", "u32": "<I", "s32": "<i", "u64": "<Q", "s64": "<q",
          "f16": "<e", "f32": "<f", "f64": "<d"}  # fmt: skip
_CHANGED = "bold green"


def document(execution: Execution) -> str:
    """The document of ``mcheck exec --format json``."""
    content = header(
        path=execution.path,
        seed=execution.seed,
        registers={name: "unknown" if value is None else value for name, value in execution.registers.items()},
        memory={item.label: item.hex for item in execution.objects},
        mbarriers={
            name: {"phase": s.phase, "expected": s.expected, "pending": s.pending, "tx": s.tx}
            for name, s in execution.barriers.items()
        },
        condition=execution.holds,
        notes=list(execution.notes),
        open_points=list(execution.open_points),
        findings=[finding_report.to_json(f) for f in execution.findings],
    )
    return json.dumps(content, indent=1) + "\n"


def lines(
    execution: Execution, *, everything: bool = False, threads: int = 8, width: int | None = None
) -> Iterator[Line]:
    """The lines of the execution; ``width`` is the width of the terminal, if there is one.

    Without ``everything`` only objects and rows that changed, and the first few threads.
    """
    for found in execution.findings:
        yield from finding_report.lines(found, execution.source, width=width)
        yield ()
    if not execution.ended:
        yield ("The execution did not terminate.",)
    for note in execution.notes:
        yield "note: ", note
    if everything and execution.open_points:
        yield (("assumed without support in the documents", "bold"),)
        for point in execution.open_points:
            yield (f"  {point}",)
    yield from _registers(execution, None if everything else threads)
    if execution.objects:
        yield ("memory", "bold"), " (* changed)"
    for item in execution.objects:
        yield from _object(item, everything, bytes_per_row(width))
    if execution.barriers:
        yield (("mbarriers", "bold"),)
        for name, state in execution.barriers.items():
            counts = f"{state.pending} of {state.expected} arrivals and {state.tx} bytes pending"
            yield (f"  {name}: phase {state.phase}, {counts}",)
    if execution.condition:
        holds = {True: "holds", False: "does not hold", None: "depends on uninitialised contents"}
        yield f"{execution.condition}: the formula {holds[execution.holds]} at the end of this execution", ""


def _registers(execution: Execution, most: int | None) -> Iterator[Line]:
    by_thread: dict[str, list[str]] = {}
    for label, value in execution.registers.items():
        thread, _, register = label.rpartition(":")
        by_thread.setdefault(thread, []).append(f"{register}={_number(value)}")
    if not by_thread:
        return
    yield (("registers", "bold"),)
    for k, (thread, values) in enumerate(by_thread.items()):
        if most is not None and k >= most:
            yield (f"  and {len(by_thread) - most} more threads (--all shows them)",)
            return
        yield (f"  {thread}: {' '.join(values)}",)


def _number(value: int | None) -> str:
    return UNKNOWN if value is None else format_number(value)


def bytes_per_row(width: int | None) -> int:
    """The number of bytes in a row: as many as fit beside their offset."""
    return next((n for n in (ROW, ROW // 2) if width is None or 11 + 3 * n <= width), ROW // 4)


def _object(item: Object, everything: bool, row: int) -> Iterator[Line]:
    size = len(item.data)
    if item.opaque:
        yield (f"  {item.label}: a tensor map",)
        return
    touched = sum(b - a for a, b in item.changed)
    unknown = item.known is not None and not any(item.known)
    state = UNKNOWN if unknown else f"{touched} changed" if touched else "unchanged"
    yield (f"  {item.label}: {size} byte{'s' * (size != 1)}, {state}",)
    if unknown or not (touched or everything):
        return
    marks = bytearray(size)
    for a, b in item.changed:
        marks[a:b] = b"\1" * (b - a)
    skipped = 0
    for start in range(0, size, row):
        end = min(start + row, size)
        if not everything and not any(marks[start:end]):
            skipped += end - start
            continue
        if skipped:
            yield (f"    {'':6}  {skipped} unchanged bytes",)
            skipped = 0
        yield f"    {start:6x} ", *_row(item, marks, start, end)
    if skipped:
        yield (f"    {'':6}  {skipped} unchanged bytes",)


def _row(item: Object, marks: bytearray, start: int, end: int) -> Iterator[Segment]:
    """A row of typed values, or of bytes where the object is untyped."""
    code = _CODES.get(item.elem)
    width = item.elem_size if code and len(item.data) % item.elem_size == 0 else 1
    for at in range(start, end, width):
        stop = at + width
        changed = any(marks[at:stop])
        if item.known is not None and not all(item.known[at:stop]):
            text = "??"
        elif code:
            text = _value(code, item.data[at:stop])
        else:
            text = item.data[at:stop].hex()
        shown = f" {'*' if changed else ' '}{text}" if code else f"{'*' if changed else ' '}{text}"
        yield (shown, _CHANGED) if changed else shown


def _value(code: str, data: bytes) -> str:
    value = struct.unpack(code, data)[0]
    return f"{value:g}" if isinstance(value, float) else str(value)
