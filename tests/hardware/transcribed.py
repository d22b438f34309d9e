"""The kernel of a test as a litmus text of its own, for an executor that knows neither launches nor parameters.

All threads of the launch of one instance are one role. Delays and noise go, bounded polls become waits, parameters the
addresses of objects, and matrix products, whose results the concrete engine does not know, nothing.
"""

from __future__ import annotations

import re

from hardware.litmus import settings
from hardware.litmus.kernel import Kernel

_FRESH = r"setp\.ne\.u32 %q\d+, %stuck\d+, 0;\nselp\.u32 %polls\d+, \d+, 0, %q\d+;\n"
_WAIT = re.compile(
    _FRESH + r"(W\d+_\d+):\n(mbarrier\.test_wait\S*) %p\d+, ([^;]*);\n"
    r"@%p\d+ bra \1_done;\n.*?\1_done:\n",
    re.DOTALL,
)
_AWAIT = re.compile(
    _FRESH + r"(W\d+_\d+):\n(\S+) (%\w+), ([^;]*);\nsetp\.(\w+)\.\w+ %p\d+, \3, (\S+);\n"
    r"@%p\d+ bra \1_done;\n.*?\1_done:\n",
    re.DOTALL,
)
_TABLE = re.compile(r"\.global \.align 4 \.u32 (\w+)\[(\d+)\] = \{(.*?)\};\n")
_COMPARED = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
MEMORY = {"results": 8, "stuck": 4, "scratch": 64, "line": 4, "done": 4}


def transcribed(made: Kernel) -> str:
    """The text for one instance; its objects are ``OBJ0``, ``OBJ1``, …, its results ``results``."""
    layout = made.layout
    assert layout["cluster"] in (1, layout["ctas"])
    assert not any(o.item.tensor_map or o.proxy for o in made.objects)
    head, _, rest = made.text.partition("{\n.reg")
    body = ".reg" + rest.partition("NOISE:")[0].replace("@%go bra NOISE;\n", "")
    registers = re.findall(r"\.reg \.(\w+) ([^;]*);", body)
    body = re.sub(r"^(\.reg|//|wgmma\.mma_async)[^\n]*\n", "", body, flags=re.MULTILINE)
    body = re.sub(r"mov\.u32 (%\w+), %clock;", r"mov.u32 \1, 0;", body)
    body = re.sub(r"mov\.u32 (%v\d+), \d+;\n(mov\.u32 %m\d+, 0;\nPAUSE)", r"mov.u32 \1, 0;\n\2", body)
    body = re.sub(r"PIPE(\d+):\n.*?QUIET\1:", r"QUIET\1:", body, flags=re.DOTALL)
    body = _WAIT.sub(r"await \2 \3;\n", body)
    body = _AWAIT.sub(lambda m: f"await {m[2]} {m[3]}, {m[4]} {_COMPARED[m[5]]} {m[6]};\n", body)
    values = {settings.at(name): name for name in MEMORY}
    for k in range(len(made.objects)):
        values[settings.object_at(k)] = f"OBJ{k}"
        values[settings.object_at(k) + 8] = "1"
    body = re.sub(r"ld\.param\.(\w+) (%\w+), \[A\+(\d+)\];", lambda m: _given(m, values), body)
    sizes = {**MEMORY, "results": 8 * max(made.slots, 1)}
    declared = [f".global .align 128 .b8 {name}[{size}];" for name, size in sizes.items()]
    for k, item in enumerate(made.objects):
        data = (item.item.init or b"").ljust(item.stride, b"\0")
        declared.append(f".global .align 256 .b8 OBJ{k}[{len(data)}] = {{{', '.join(map(str, data))}}};")
    declared += [
        f".global .align 4 .u32 {name}[{count}] = {{{numbers}}};" for name, count, numbers in _TABLE.findall(head)
    ]
    declared.append(f".shared .align 1024 .b8 S[{settings.BLOCKS + layout['block']}];")
    names = [f".reg .{kind} {', '.join(n.strip().lstrip('%') for n in found.split(','))};" for kind, found in registers]
    place = f"{'cluster 0, ' if layout['cluster'] > 1 else ''}cta 0..{layout['ctas']}, warp 0..{layout['warps']}"
    lines = ["PTX kernel", "{", *declared, "}", f"all@{place} {{", *names, body, "}", ""]
    return "\n".join(lines)


def _given(found: re.Match[str], values: dict[int, str]) -> str:
    return f"mov.{found[1]} {found[2]}, {values.get(int(found[3]), '0')};"
