"""A small module as a sketch: its text, all threads as one role, without the code that follows modules.

It takes what it needs: one entry, a statement per line, control that depends on thread numbers. A loop around a wait
becomes an ``await``, a parameter a constant or the address of its buffer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from mcheck.frontend.ptx import launch_reader, reader
from mcheck.frontend.ptx.launch import Argument, Buffer, Map
from mcheck.frontend.ptx.launch import Launch as Resolved

WARP = 32
_WAIT = re.compile(r"(\w+): (mbarrier\.(?:try|test)_wait\S*) %\w+, ([^;]*); @!%\w+ bra \1;")
_LOAD = re.compile(r"(\w+): (ld\.\S+) (%\w+), (\[[^]]*\]); setp\.eq\.\w+ (%\w+), \3, (\w+); @\5 bra \1;")
_LEFT_OUT = (".version", ".target", ".address_size", ".reg ", "//")
_COMPARED = {"ne": "==", "eq": "!="}


def sketch(text: str, given: Mapping[str, Any]) -> str:
    """The module ``text`` with its launch as a sketch; raises ``ValueError`` for what it does not take."""
    launch = launch_reader.build_launch(reader.parse_module(text), launch_reader.from_object(dict(given)))
    header, _, body = text.partition("{")
    if header.count(".entry") != 1:
        raise ValueError("one entry is taken")
    lines = [line.strip() for line in body.rpartition("}")[0].splitlines()]
    kept = [line for line in lines if line and not line.startswith(_LEFT_OUT)]
    objects = [line for line in kept if line.startswith(".shared")]
    code = " ".join(line for line in kept if not line.startswith(".shared"))
    code = _WAIT.sub(r"\1: await \2 [\3;", code).replace("[[", "[")
    code = _LOAD.sub(r"\1: await \2 \3, \4 != \6;", code)
    for argument in launch.arguments:
        code = _put(code, argument)
    if "ld.param" in code:
        raise ValueError("a parameter is not given")
    code = code.replace("cvta.param.u64", "mov.u64").replace("ret;", "exit;")
    statements = re.sub(r"; ", ";\n  ", re.sub(r"(\b\w+:) ", r"\1\n  ", code))
    declared = "\n  ".join([*_declared(launch), *objects])
    return f"PTX module\n{{\n  {declared}\n}}\n{_role(launch)} {{\n  {statements}\n}}\n"


def _put(code: str, argument: Argument) -> str:
    """The parameter's loads as moves of what it is."""
    buffer = argument.places and isinstance(argument.places[0][1], Buffer)
    value = argument.name if buffer else str(int.from_bytes(argument.data, "little"))
    return re.sub(rf"ld\.param\.(\w+) (%\w+), \[{argument.name}\];", rf"mov.\1 \2, {value};", code)


def _declared(launch: Resolved) -> Iterator[str]:
    for argument in launch.arguments:
        for _, place in argument.places:
            match place:
                case Buffer(size=int(size)):
                    begun = "".join(f"{byte}, " for byte in place.initial).removesuffix(", ")
                    yield f".global .align 128 .b8 {argument.name}[{size}]" + (f" = {{{begun}}};" if begun else ";")
                case Map(spec, Buffer(size=int(size))):
                    yield f".global .align 128 .b8 {argument.name}_data[{size}];"
                    braces = {
                        name: "{" + ", ".join(map(str, getattr(spec, name))) + "}"
                        for name in ("global_dim", "global_stride", "box_dim", "element_stride")
                    }
                    yield (
                        f".global .tensormap {argument.name} = {{ global_address = {argument.name}_data, "
                        f"elemtype = {spec.elemtype}, rank = {spec.rank}, "
                        + ", ".join(f"{name} = {value}" for name, value in braces.items())
                        + f", interleave_layout = {spec.interleave_layout}, swizzle_mode = {spec.swizzle_mode}, "
                        f"swizzle_atomicity = {spec.swizzle_atomicity}, fill_mode = {spec.fill_mode} }};"
                    )
                case _:
                    raise ValueError(f"{argument.name} is neither a buffer of known size nor a tensor map")


def _role(launch: Resolved) -> str:
    threads, ctas = launch.block[0], launch.cluster[0]
    if threads > WARP and threads % WARP:
        raise ValueError("whole warps or a part of one")
    lanes = f"warp 0, lane 0..{threads}" if threads < WARP else f"warp 0..{threads // WARP}"
    return f"t@{'cluster 0, ' if ctas > 1 else ''}cta 0..{ctas}, {lanes}"
