"""Launches: what JSON and options say, held against the module, and every mistake with its place."""

from __future__ import annotations

import json
import struct
from typing import Any

import pytest

from mcheck.base.errors import InputError, Unsupported
from mcheck.frontend.ptx.json_positions import Node
from mcheck.frontend.ptx.launch import AnyNumber, Argument, Buffer, Launch, Map
from mcheck.frontend.ptx.launch_reader import LaunchDescription, build_launch, from_json, from_object
from mcheck.frontend.ptx.module import Module
from mcheck.frontend.ptx.reader import parse_module

HEAD = ".version 8.7\n.target sm_90a\n.address_size 64\n"
PLAIN = parse_module(f"{HEAD}.entry k(.param .u64 a, .param .u32 n, .param .f32 beta) {{ ret; }}")
BLOCK = parse_module(
    f"{HEAD}.entry k(.param .align 64 .b8 s[256], .param .align 64 .b8 tm[128], .param .u64 a) {{ ret; }}"
)
FIXED = parse_module(
    f"{HEAD}.extern .shared .b8 smem[];\n.func f() {{ .reg .b64 %r<2>; mov.u64 %r1, smem; ret; }}\n"
    ".entry k() .reqntid 128 .reqnctapercluster 2, 1, 1 { call f; ret; }"
)
TWO = parse_module(f"{HEAD}.entry k() .explicitcluster {{ ret; }} .entry l() .maxntid 64, 2 {{ ret; }}")
SHAPE: dict[str, Any] = {"grid": [4], "block": [32]}
MAP = {
    "global_address": "a", "elemtype": "f16", "rank": 2, "global_dim": [64, 32], "global_stride": [128],
    "box_dim": [64, 8], "element_stride": [1, 1], "swizzle_mode": "128B",
}  # fmt: skip


def made(read: Module, value: dict[str, Any]) -> Launch:
    return build_launch(read, from_object(value))


def params(read: Module, **values: Any) -> tuple[Argument, ...]:
    return made(read, {**SHAPE, "params": values}).arguments


def refused(read: Module, value: object) -> InputError:
    text = json.dumps(value, indent=1)
    with pytest.raises(InputError) as caught:
        build_launch(read, from_json(text, "launch.json"))
    return caught.value


# --- shapes -------------------------------------------------------------------------------------------------------


def test_a_launch_is_filled_up() -> None:
    found = made(PLAIN, {**SHAPE, "assume": ["converged"], "first": [3, 0, 0]})
    assert (found.entry, found.grid, found.block, found.cluster) == ("k", (4, 1, 1), (32, 1, 1), (1, 1, 1))
    assert (found.shared, found.first, found.assume) == (0, (3, 0, 0), ("converged",))
    assert [a.is_given for a in found.arguments] == [False, False, False]


def test_directives_need_not_be_repeated() -> None:
    found = made(FIXED, {"grid": 2, "shared": 1024})
    assert (found.block, found.cluster, found.shared) == ((128, 1, 1), (2, 1, 1), 1024)


def test_what_is_missing_is_asked_for_at_once() -> None:
    assert refused(FIXED, {}).message == "the launch does not give grid, shared (the bytes of smem)"
    assert (refused(FIXED, {}).hint or "").startswith("--grid 4,1,1 --shared N, or a field of the launch file")
    assert refused(TWO, {}).message == "the launch does not give entry (one of k, l)"
    assert (refused(TWO, {"entry": "l"}).hint or "").startswith("--block 64,2,1 --grid 4,1,1, or a field"), "what fits"
    assert refused(TWO, {"entry": "k"}).message == "the launch does not give block, cluster, grid"
    assert refused(PLAIN, {"params": {"n": 4}}).expected == "parameters that are not given are unknown: a, beta"


def test_options_win() -> None:
    options = LaunchDescription({"grid": Node([9], "--grid")}, {"n": Node(7, "--param n")})
    found = build_launch(PLAIN, options.override(from_object({**SHAPE, "params": {"n": 5, "a": {"buffer": 4}}})))
    assert found.grid == (9, 1, 1)
    assert found.arguments[1].data == b"\7\0\0\0"
    assert found.arguments[0].places == ((0, Buffer("a", 4)),)


# --- parameters ---------------------------------------------------------------------------------------------------


def test_numbers() -> None:
    found = params(PLAIN, n=-2, beta=1)
    assert found[1] == Argument("n", 4, b"\xfe\xff\xff\xff", ((0, 4),))
    assert found[2].data == struct.pack("<f", 1.0)
    assert params(PLAIN, **{"1": {"hex": "0a000000"}})[1].data == b"\x0a\0\0\0"
    assert params(PLAIN, n="any")[1].places == ((0, AnyNumber()),)


def test_buffers() -> None:
    found = params(PLAIN, a={"buffer": 64, "init": {"hex": "0102"}})[0]
    assert found.places == ((0, Buffer("a", 64, b"\1\2")),)
    assert params(PLAIN, a={"buffer": None})[0].places == ((0, Buffer("a", None)),)


def test_a_tensor_map_and_its_buffer() -> None:
    found = params(BLOCK, tm={"tensormap": MAP}, a={"buffer": 4096})
    ((offset, place),) = found[1].places
    assert offset == 0
    assert isinstance(place, Map)
    assert place.buffer is found[2].places[0][1]
    assert (place.spec.box_dim, place.spec.fill_mode, place.spec.global_dim) == ((64, 8), "zero", (64, 32))


def test_a_block_of_parameters() -> None:
    at = {"64": {"buffer": None}, "128": {"tensormap": {**MAP, "global_address": {"buffer": 8}}}}
    found = params(BLOCK, s={"hex": "11" * 256, "at": at})[0]
    assert found.known == ((0, 64), (72, 128))
    assert found.places[0] == (64, Buffer("s+64", None))
    place = found.places[1][1]
    assert isinstance(place, Map)
    assert place.buffer == Buffer("s+128.global_address", 8)


def test_a_dimension_of_one_slice_may_have_no_stride() -> None:
    """As CUTLASS encodes a batch of one."""
    flat = {
        **MAP,
        "rank": 3,
        "global_dim": [64, 32, 1],
        "global_stride": [128, 0],
        "box_dim": [64, 8, 1],
        "element_stride": [1, 1, 1],
    }
    found = params(BLOCK, a={"buffer": 4096}, tm={"tensormap": flat})
    assert found[1].places
    below = refused(
        BLOCK, {**SHAPE, "params": {"a": {"buffer": 4096}, "tm": {"tensormap": {**flat, "global_stride": [128, -16]}}}}
    )
    assert "-16" in below.message


def test_a_pointer_to_a_map() -> None:
    found = params(PLAIN, a={"tensormap": {**MAP, "global_address": {"buffer": None}}})[0].places[0][1]
    assert isinstance(found, Buffer)
    assert found.size == 128
    assert len(found.maps) == 1


def test_a_map_that_is_not_described_is_unknown() -> None:
    assert not params(BLOCK, tm={"tensormap": {}})[1].is_given


# --- mistakes -----------------------------------------------------------------------------------------------------

WRONG: list[tuple[Module, object, str, str]] = [
    (PLAIN, [], "PTX103", "["),
    (PLAIN, {"gird": [1]}, "PTX104", '"gird"'),
    (PLAIN, {**SHAPE, "entry": "kernel"}, "PTX106", '"kernel"'),
    (FIXED, {"grid": 2, "shared": 0, "block": [64, 1, 1]}, "PTX107", "["),
    (FIXED, {"grid": 2, "shared": 0, "cluster": [4]}, "PTX107", "["),
    (FIXED, {"grid": 3, "shared": 0}, "PTX109", "3"),
    (FIXED, {"grid": 2, "shared": 1 << 20}, "PTX108", "1048576"),
    (PLAIN, {"grid": [0], "block": 1}, "PTX108", "["),
    (PLAIN, {"grid": "many", "block": 1}, "PTX103", '"many"'),
    (PLAIN, {"grid": 1, "block": [512, 4]}, "PTX108", "["),
    (PLAIN, {"grid": 1, "block": 1, "first": [1, 0, 0]}, "PTX108", "["),
    (PLAIN, {"grid": 1, "block": 1, "assume": ["luck"]}, "PTX115", '"luck"'),
    (TWO, {"entry": "l", "grid": 1, "block": 256}, "PTX108", "256"),
    (PLAIN, {**SHAPE, "params": {"m": 4}}, "PTX110", '"m"'),
    (PLAIN, {**SHAPE, "params": {"n": 4, "1": 5}}, "PTX111", '"1"'),
    (PLAIN, {**SHAPE, "params": {"n": 1 << 32}}, "PTX112", "4294967296"),
    (PLAIN, {**SHAPE, "params": {"n": 0.5}}, "PTX112", "0.5"),
    (PLAIN, {**SHAPE, "params": {"n": {"hex": "00"}}}, "PTX112", '"00"'),
    (PLAIN, {**SHAPE, "params": {"n": {"buffer": 4}}}, "PTX112", "{"),
    (PLAIN, {**SHAPE, "params": {"a": {"buffer": 1, "init": {"hex": "0000"}}}}, "PTX112", "{"),
    (PLAIN, {**SHAPE, "params": {"a": {"buffer": 4, "init": [0]}}}, "PTX103", "["),
    (PLAIN, {**SHAPE, "params": {"a": {"buffer": 4, "init": {"hx": "00"}}}}, "PTX104", '"hx"'),
    (PLAIN, {**SHAPE, "params": {"a": {"buffer": -1}}}, "PTX103", "-1"),
    (PLAIN, {**SHAPE, "params": {"a": {"bufer": 1}}}, "PTX104", '"bufer"'),
    (PLAIN, {**SHAPE, "params": {"n": {"hex": "0x0g"}}}, "PTX113", '"0x0g"'),
    (PLAIN, {**SHAPE, "params": {"n": None}}, "PTX103", "null"),
    (BLOCK, {**SHAPE, "params": {"s": 4}}, "PTX112", "4"),
    (BLOCK, {**SHAPE, "params": {"s": {"at": {"250": {"buffer": 1}}}}}, "PTX112", "{"),
    (BLOCK, {**SHAPE, "params": {"s": {"at": {"x": {"buffer": 1}}}}}, "PTX112", '"x"'),
    (BLOCK, {**SHAPE, "params": {"s": {"at": {"256": {"buffer": 1}}}}}, "PTX112", '"256"'),
    (BLOCK, {**SHAPE, "params": {"tm": {"tensormap": MAP}}}, "PTX114", '"a"'),
    (BLOCK, {**SHAPE, "params": {"tm": {"tensormap": {**MAP, "bax_dim": [1]}}}}, "LIT033", '"bax_dim"'),
    (BLOCK, {**SHAPE, "params": {"a": {"buffer": 1}, "tm": {"tensormap": {**MAP, "box_dim": [1]}}}}, "LIT037", "["),
    (BLOCK, {**SHAPE, "params": {"a": {"buffer": 1}, "tm": {"tensormap": {**MAP, "rank": "2"}}}}, "LIT036", '"2"'),
    (BLOCK, {**SHAPE, "params": {"a": {"buffer": 1}, "tm": {"tensormap": {"rank": 1}}}}, "LIT034", "{"),
]


@pytest.mark.parametrize(("read", "value", "code", "at"), WRONG, ids=[f"{k}-{row[2]}" for k, row in enumerate(WRONG)])
def test_a_mistake_is_shown_where_it_stands(read: Module, value: object, code: str, at: str) -> None:
    error = refused(read, value)
    assert error.code == code, error.message
    assert error.span is not None
    line = json.dumps(value, indent=1).split("\n")[error.span.line - 1]
    assert line[error.span.column - 1 :].startswith(at)


def test_the_whole_key_is_marked_and_its_correction_named() -> None:
    error = refused(PLAIN, {"gird": [1]})
    assert error.hint == "did you mean grid?"
    assert error.span is not None
    assert error.span.length == len('"gird"')


def test_a_parameter_with_bytes_is_a_buffer() -> None:
    error = refused(PLAIN, {**SHAPE, "params": {"a": {"bytes": 4096}}})
    assert error.hint == "memory of so many bytes is given as buffer"


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ('{"grid": 1,\n "grid": 2}', 2, 2),
        (
            '{"params": {"a": {"b": 1}, "b": {"b": 1}, "c\\"": [{"a": 1}, {"a": 1}], // "a": 1\n "a": 3}}',
            2,
            2,
        ),
    ],
)
def test_a_key_that_stands_twice_is_shown(text: str, line: int, column: int) -> None:
    with pytest.raises(InputError) as caught:
        from_json(text, "launch.json")
    assert caught.value.code == "PTX102"
    assert caught.value.span is not None
    assert (caught.value.span.line, caught.value.span.column) == (line, column)


def test_what_is_no_json() -> None:
    for text in ("{", '{"grid": NaN}', '{"grid": 1, "grid": 2}', "[" * 100_000, ""):
        with pytest.raises(InputError) as caught:
            from_json(text, "launch.json")
        assert caught.value.code in ("PTX101", "PTX102")
        assert "is no JSON" not in caught.value.message


def test_comments_are_allowed() -> None:
    found = from_json('{"grid": [4], // CTAs\n "block": /* threads */ 32}', "launch.json")
    assert build_launch(PLAIN, found).grid == (4, 1, 1)


def test_modules_that_have_no_launch() -> None:
    with pytest.raises(InputError, match="no entry with a body"):
        made(parse_module(f"{HEAD}.func f() {{ ret; }}"), SHAPE)
    with pytest.raises(InputError, match="unknown target 'sm_52'"):
        made(parse_module(".version 8.0 .target sm_52 .address_size 64 .entry k() { ret; }"), SHAPE)
    with pytest.raises(Unsupported, match="32-bit addresses"):
        made(parse_module(".version 8.0 .target sm_90 .address_size 32 .entry k() { ret; }"), SHAPE)


def test_parameters_that_nvcc_has_numbered_are_named_by_their_places() -> None:
    head = ".version 8.0\n.target sm_80\n.address_size 64\n"
    text = f"{head}.visible .entry k(.param .u64 k_param_0, .param .u32 k_param_1)\n{{\n  ret;\n}}\n"
    with pytest.raises(InputError) as caught:
        build_launch(parse_module(text, "k.ptx"), from_object({"grid": 1, "block": 32, "params": {"tiles": 8}}))
    assert caught.value.expected == "one of its parameters: parameter 0 (k_param_0), parameter 1 (k_param_1)"
    assert caught.value.hint is not None
    assert "--param 0=VALUE" in caught.value.hint


def test_a_parameter_by_the_name_that_nvcc_gave_it() -> None:
    assert params(PLAIN, k_param_1=3) == params(PLAIN, n=3)
    assert "k_param_3" in refused(PLAIN, {**SHAPE, "params": {"k_param_3": 1}}).message


def test_contents_that_are_no_object_are_told_how_to_write_them() -> None:
    error = refused(PLAIN, {**SHAPE, "params": {"a": {"buffer": 4, "init": [1]}}})
    assert '{"hex": "01000000"} is the 32-bit number 1' in (error.expected or "")
