"""Files of several launches: what they say, and every mistake with its place."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcheck.base.errors import InputError
from mcheck.frontend.ptx.json_positions import Node
from mcheck.frontend.ptx.launch import Buffer, LaunchSequence, Map
from mcheck.frontend.ptx.launch_reader import MAX_LAUNCHES, LaunchDescription, build_launch, from_json, from_object
from mcheck.frontend.ptx.launch_sequence_reader import build_launches
from mcheck.frontend.ptx.reader import parse_module

HEAD = ".version 8.7\n.target sm_90a\n.address_size 64\n"
MODULE = parse_module(
    f"{HEAD}.entry a(.param .u64 x, .param .u64 y) {{ ret; }}\n"
    ".entry b(.param .u64 x, .param .align 64 .b8 tm[128]) .reqntid 32, 1, 1 { ret; }"
)
A: dict[str, Any] = {"entry": "a", "grid": 2, "block": 32, "params": {"x": {"buffer": "p"}}}
B: dict[str, Any] = {"entry": "b", "grid": 1}
BUFFERS: dict[str, Any] = {"p": {"bytes": 64}}
MAP = {
    "global_address": "x", "elemtype": "f16", "rank": 2, "global_dim": [64, 32], "global_stride": [128],
    "box_dim": [64, 8], "element_stride": [1, 1], "swizzle_mode": "128B",
}  # fmt: skip


def made(*launches: dict[str, Any], **buffers: Any) -> LaunchSequence:
    found = build_launches(MODULE, from_object({"launches": list(launches), "buffers": {**BUFFERS, **buffers}}))
    assert isinstance(found, LaunchSequence)
    return found


def refused(text: str) -> tuple[str, str | None, str | None, str]:
    """The message, what was expected, the hint, and the text at the place."""
    with pytest.raises(InputError) as caught:
        build_launches(MODULE, from_json(text, "l.json"))
    error = caught.value
    assert error.span is not None
    line = text.split("\n")[error.span.line - 1]
    return error.message, error.expected, error.hint, line[error.span.column - 1 :][: error.span.length]


# --- what they say --------------------------------------------------------------------------------------------


def test_launches_in_their_order() -> None:
    found = made(A, {**B, "gpu": 3, "programmatic": True, "cooperative": True})
    first, second = found.launches
    assert [x.entry for x in found.launches] == ["a", "b"]
    assert (first.gpu, first.programmatic, first.cooperative) == (0, False, False)
    assert (second.gpu, second.programmatic, second.cooperative) == (3, True, True)


def test_one_launch_has_the_same_fields() -> None:
    one = build_launches(MODULE, from_object({**B, "gpu": 1, "programmatic": True, "cooperative": True}))
    assert not isinstance(one, LaunchSequence)
    assert (one.gpu, one.programmatic, one.cooperative) == (1, True, True)


def test_buffers_are_shared_by_name() -> None:
    found = made(A, {**B, "params": {"0": {"buffer": "p"}}}, p={"bytes": 64, "gpu": 2, "init": {"hex": "0102"}})
    shared = Buffer("p", 64, b"\1\2", declared=True, gpu=2)
    assert shared.gpus is None
    assert [x.buffers for x in found.launches] == [(shared,), (shared,)]


def test_a_buffer_of_unknown_size() -> None:
    assert made(A, p={"bytes": None}).launches[0].buffers == (Buffer("p", None, declared=True),)


def test_buffers_of_one_launch() -> None:
    found = made({**A, "params": {"x": {"buffer": 64}, "y": {"buffer": "p"}}}).launches[0]
    assert found.buffers == (Buffer("x", 64), Buffer("p", 64, declared=True))


@pytest.mark.parametrize("address", ["x", "p", {"buffer": "p"}])
def test_a_tensor_map_of_a_declared_buffer(address: object) -> None:
    params = {"x": {"buffer": "p"}, "tm": {"tensormap": {**MAP, "global_address": address}}}
    found = made({**B, "params": params}, p={"bytes": 4096}).launches[0]
    place = found.arguments[1].places[0][1]
    assert isinstance(place, Map)
    assert place.buffer == Buffer("p", 4096, declared=True)
    assert found.buffers == (place.buffer,)


# --- mistakes -------------------------------------------------------------------------------------------------

WHOLE = '{"launches": [%s], "buffers": {"p": {"bytes": 64}, "weights": {"bytes": 8}}}'
ONE = '{"entry": "a", "grid": 1, "block": 32, "params": {"x": %s}}'
MISTAKES = [
    ('[{"entry": "a"}]', "the document is not a valid launch", "an object with entry, grid, block and params",
     'several launches are {"launches": [...]}', '[{"entry": "a"}]'),
    ('{"launches": []}', "/launches is not a valid list of launches",
     '[{"entry": …, "grid": …}, …], at least one', None, "[]"),
    ('{"launches": {}}', "/launches is not a valid list of launches",
     '[{"entry": …, "grid": …}, …], at least one', None, "{}"),
    ('{"launches": [1]}', "/launches/0 is not a valid launch", "an object with entry, grid, block and params", None,
     "1"),
    ('{"buffers": {}}', "the launch does not give launches", '"launches" beside "buffers": [{"entry": …}, …]', None,
     '"buffers"'),
    ('{"launches": [{}], "bufers": {}}', "the launch has no field bufers", "launches or buffers",
     "did you mean buffers?", '"bufers"'),
    ('{"launches": [{}], "grid": 1}', "the launch has no field grid", "launches or buffers", "write it in each launch",
     '"grid"'),
    ('{"launches": [{}], "buffers": []}', "/buffers is not a valid object",
     'buffers by name, such as {"x": {"bytes": 4096}}', None, "[]"),
    ('{"launches": [{}], "buffers": {"x": 64}}', "/buffers/x is not a valid buffer",
     'an object such as {"bytes": 4096}', None, "64"),
    ('{"launches": [{}], "buffers": {"x": {"gpu": 0}}}', "/buffers/x is not a valid buffer",
     'its bytes: {"bytes": 4096}, or null if they are unknown', None, '{"gpu": 0}'),
    ('{"launches": [{}], "buffers": {"x": {"byte": 8}}}', "the launch has no field byte",
     "one of bytes, gpu, peers, init, multicast", "did you mean bytes?", '"byte"'),
    ('{"launches": [{}], "buffers": {"x": {"buffer": 8}}}', "the launch has no field buffer",
     "one of bytes, gpu, peers, init, multicast", "the number of bytes is given as bytes", '"buffer"'),
    ('{"launches": [{}], "buffers": {"x": {"bytes": -8}}}', "/buffers/x/bytes is not a valid size of a buffer",
     "a number of bytes, or null", None, "-8"),
    ('{"launches": [{}], "buffers": {"x": {"bytes": 1, "init": {"hex": "0102"}}}}',
     "/buffers/x/init does not fit in parameter x: the buffer has 1 bytes, init gives 2", None, None,
     '{"hex": "0102"}'),
    ('{"launches": [{}], "buffers": {"x": {"bytes": 1, "peers": 1}}}', "/buffers/x/peers is not a valid list of GPUs",
     "the numbers of GPUs, such as [1]", None, "1"),
    ('{"launches": [{}], "buffers": {"x": {"bytes": 1, "peers": [-1]}}}', "gpu is -1, expected 0 to 1023", None, None,
     "-1"),
    ('{"launches": [{}], "buffers": {"x": {"bytes": 1, "gpu": -1}}}', "gpu is -1, expected 0 to 1023", None, None,
     "-1"),
    (WHOLE % (ONE % '{"buffer": "wieghts"}'), "wieghts is not a buffer", "one of p, weights", "did you mean weights?",
     '"wieghts"'),
    ('{"launches": [%s]}' % (ONE % '{"buffer": "p"}'), "p is not a buffer",
     "a buffer that the file declares under buffers", None, '"p"'),
    (WHOLE % (ONE % '{"buffer": "p", "init": {"hex": ""}}'), "the launch has no field init", "nothing beside the name",
     "write it where p is declared", '"init"'),
    (ONE % '{"buffer": "p"}', "/params/x/buffer is not a valid size of a buffer", "a number of bytes, or null",
     'buffers have names in a file of several launches: {"launches": [...], "buffers": {...}}', '"p"'),
    (WHOLE % '{"entry": "a", "programatic": true}', "the launch has no field programatic",
     ("one of entry, grid, block, cluster, shared, first, params, assume, gpu, programmatic, cooperative, forgotten, "
     "variables"),
     "did you mean programmatic?", '"programatic"'),
    (WHOLE % '{"entry": "b", "grid": 1, "programmatic": 1}', "/launches/0/programmatic is not a valid flag",
     "true or false", None, "1"),
    (WHOLE % '{"entry": "b", "grid": 1, "cooperative": "yes"}', "/launches/0/cooperative is not a valid flag",
     "true or false", None, '"yes"'),
    (WHOLE % '{"entry": "b", "grid": 1, "gpu": "one"}', "/launches/0/gpu is not a valid GPU", "its number, such as 0",
     None, '"one"'),
    (WHOLE % '{"entry": "b", "grid": 1, "gpu": 5000}', "gpu is 5000, expected 0 to 1023", None, None, "5000"),
    (WHOLE % '{"entry": "b", "grid": 1}, {"entry": "a", "grid": 1}', "the launch does not give block",
     "parameters that are not given are unknown: x, y", "a field of this launch", '{"entry": "a", "grid": 1}'),
    (WHOLE % '{"grid": 1}', "the launch does not give entry (one of a, b)", None, "a field of this launch",
     '{"grid": 1}'),
    ('{"launches": [%s], "buffers": {"y": {"bytes": 8}}}' % (ONE % '{"buffer": "y"}'),
     "y is the name of a declared buffer and of memory of parameter y of a", None, "give the buffer another name",
     ONE % '{"buffer": "y"}'),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message", "expected", "hint", "shown"), MISTAKES, ids=[m[1] for m in MISTAKES])
def test_mistakes(text: str, message: str, expected: str | None, hint: str | None, shown: str) -> None:
    assert refused(text) == (message, expected, hint, shown)


def test_too_many_launches() -> None:
    text = json.dumps({"launches": [B] * (MAX_LAUNCHES + 1)})
    assert refused(text)[0] == f"launches is {MAX_LAUNCHES + 1}, at most {MAX_LAUNCHES} are followed"
    assert len(made(*[B] * MAX_LAUNCHES).launches) == MAX_LAUNCHES


def test_options_are_of_one_launch() -> None:
    options = LaunchDescription({"grid": Node([9], "--grid")}, {"x": Node(7, "--param x"), "y": Node(7, "--param y")})
    several = from_json(json.dumps({"launches": [A, B]}), "l.json")
    with pytest.raises(InputError) as caught:
        options.override(several)
    assert caught.value.message == "--grid, --param would be of one launch, and the file has 2"
    assert caught.value.hint == "write it in the launch that it is for"
    assert caught.value.span is not None
    assert caught.value.span.path == "l.json"
    assert LaunchDescription().override(several) == several


def test_where_one_launch_is_wanted() -> None:
    with pytest.raises(InputError) as caught:
        build_launch(MODULE, from_json(json.dumps({"launches": [A, B]}), "l.json"))
    assert caught.value.message == "the file has 2 launches, one can be taken here"
