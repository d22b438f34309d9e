"""Reader of files of several launches: the launches in stream order, and the buffers that they share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from mcheck.frontend.litmus.codes import suggest
from mcheck.frontend.ptx.json_positions import Node
from mcheck.frontend.ptx.launch import Buffer, Launch, LaunchSequence
from mcheck.frontend.ptx.launch_arguments import POINTER, declared_pointer, read_initial, read_size
from mcheck.frontend.ptx.launch_reader import LaunchDescription, build_launch, read_gpu
from mcheck.frontend.ptx.module import Module
from mcheck.frontend.ptx.problems import problem

BUFFER_FIELDS: Final = ("bytes", "gpu", "peers", "init", "multicast")


def build_launches(module: Module, given: LaunchDescription) -> Launch | LaunchSequence:
    """Validate what a launch file and options say: one launch, or several; raises ``InputError``."""
    if not given.launches:
        return build_launch(module, given)
    declared: dict[str, Buffer] = {}
    for name in given.buffers:
        _declare(name, given.buffers, declared, ())
    launches = tuple(build_launch(module, one, declared) for one in given.launches)
    for one, launch in zip(given.launches, launches, strict=True):
        _check_names(one, launch, declared)
    return LaunchSequence(launches=launches)


def _declare(name: str, nodes: Mapping[str, Node], declared: dict[str, Buffer], inside: tuple[str, ...]) -> None:
    """Declare a buffer, those that it points to before it."""
    if name in declared:
        return
    inside = (*inside, name)

    def pointer(node: Node, place: str) -> Buffer:
        wanted = node.value["buffer"]
        if not isinstance(wanted, str):
            node.child("buffer").fail("PTX103", what="buffer", expected=f"the name of a declared buffer, for {place}")
        if wanted in inside:
            hint = "buffers that point to one another cannot be given"
            node.child("buffer").fail("PTX103", what="pointer", expected="another buffer", hint=hint)
        if wanted in nodes:
            _declare(wanted, nodes, declared, inside)
        return declared_pointer(node, declared)

    def copy(node: Node) -> Buffer:
        if not isinstance(node.value, str) or node.value not in nodes or node.value in inside:
            hint = suggest(node.value, nodes) if isinstance(node.value, str) else None
            node.fail("PTX103", what="copy", expected="the name of another declared buffer", hint=hint)
        _declare(node.value, nodes, declared, inside)
        return declared[node.value]

    node = nodes[name]
    if isinstance(node.value, dict) and "multicast" in node.value:
        declared[name] = _multicast(name, node, copy, declared)
    else:
        declared[name] = _buffer(name, node, pointer)


def _multicast(name: str, node: Node, copy: Callable[[Node], Buffer], declared: Mapping[str, Buffer]) -> Buffer:
    """Read ``{"multicast": ["x0", "x1"]}``: a mapping of buffers of one size, of several GPUs."""
    for key, item in node.items():
        if key != "multicast":
            item.fail_at_key("PTX104", name=key, expected="multicast alone: bytes and GPUs are those of the copies")
    given = node.child("multicast")
    if not isinstance(given.value, list) or not given.value:
        given.fail("PTX103", what="list of copies", expected='the names of buffers, such as ["x0", "x1"]')
    found: list[Buffer] = []
    for k in range(len(given.value)):
        one, at = copy(given.child(k)), given.child(k)
        taken = one in found or any(one in other.copies for other in declared.values())
        if one.copies or one.maps or one.size is None or one.size != (found[0].size if found else one.size) or taken:
            expected = "buffers of one size that is known, each a copy of one mapping"
            at.fail("PTX103", what="copy", expected=expected)
        found.append(one)
    return Buffer(name, found[0].size, declared=True, gpu=found[0].gpu, copies=tuple(found))


def _buffer(name: str, node: Node, pointer: Callable[[Node, str], Buffer]) -> Buffer:
    """Read ``{"bytes": 4096, "gpu": 0, "peers": [1], "init": {"hex": "…"}}``."""
    if not isinstance(node.value, dict):
        node.fail("PTX103", what="buffer", expected='an object such as {"bytes": 4096}')
    for key, item in node.items():
        if key not in BUFFER_FIELDS:
            hint = "the number of bytes is given as bytes" if key in ("buffer", "size") else suggest(key, BUFFER_FIELDS)
            item.fail_at_key("PTX104", name=key, expected=f"one of {', '.join(BUFFER_FIELDS)}", hint=hint)
    if "bytes" not in node.value:
        node.fail("PTX103", what="buffer", expected='its bytes: {"bytes": 4096}, or null if they are unknown')
    gpu = read_gpu(node.child("gpu")) if "gpu" in node.value else 0
    size = read_size(node.child("bytes"))
    peers = _read_peers(node.child("peers")) if "peers" in node.value else None
    initial, pointers = read_initial(node, name, size, pointer)
    return Buffer(name, size, initial, declared=True, gpu=gpu, pointers=pointers, peers=peers)


def _read_peers(node: Node) -> tuple[int, ...]:
    """Read the GPUs that may access a buffer beside its own: ``[1, 2]``."""
    if not isinstance(node.value, list):
        node.fail("PTX103", what="list of GPUs", expected="the numbers of GPUs, such as [1]")
    return tuple(read_gpu(node.child(k)) for k in range(len(node.value)))


def _check_names(given: LaunchDescription, launch: Launch, declared: Mapping[str, Buffer]) -> None:
    """Raise an error if memory of a parameter alone has the name of a declared buffer that the launch uses."""
    used = {buffer.name for buffer in launch.buffers if buffer.declared}
    own = {buffer.name for buffer in launch.buffers if not buffer.declared}
    own |= {a.name for a in launch.arguments if not a.is_given and a.size == POINTER}
    for name in declared:
        if name in used & own:
            span = None if given.place is None else given.place.span
            raise problem("PTX123", span, name=name, entry=launch.entry, hint="give the buffer another name")
