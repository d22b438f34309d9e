"""From the record of a program to a launch file: each launch once, with its memory."""

from __future__ import annotations

from typing import Any

import pytest

from mcheck.base.errors import InputError
from mcheck.frontend.cuda.recording import compose_recording, read_lines
from mcheck.frontend.ptx.known_contents import Contents
from mcheck.frontend.ptx.launch_reader import MAX_LAUNCHES, from_object
from mcheck.frontend.ptx.launch_sequence_reader import build_launches
from mcheck.frontend.ptx.reader import parse_module

MODULE_TEXT = (
    ".version 8.7\n.target sm_90a\n.address_size 64\n"
    ".entry k(.param .u64 a, .param .u64 b, .param .u32 n) { ret; }\n.entry l(.param .u64 a) { ret; }"
)
MODULE = parse_module(MODULE_TEXT)


def at(number: int, offset: int = 0) -> dict[str, Any]:
    return {"allocation": number, "offset": offset}


def line(params: dict[str, Any], allocations: dict[str, Any], entry: str = "k", **more: Any) -> dict[str, Any]:
    filled = {key: {"version": 0, "gpu": 0, **about} for key, about in allocations.items()}
    return {
        "entry": entry, "grid": [4, 1, 1], "block": [64, 1, 1], "shared": 0, "process": 7, "gpu": 0, "stream": 0,
        "params": params, "allocations": filled, **more,
    }  # fmt: skip


def document(*lines: dict[str, Any]) -> Any:
    found = compose_recording(lines, MODULE.parameter_names)
    assert found is not None
    build_launches(MODULE, from_object(found.document))
    return found.document


def test_one_launch_with_memory_of_its_own() -> None:
    memory = {"3": {"bytes": 4096}, "4": {"bytes": 64, "init": {"hex": "01000000"}}}
    found = document(line({"0": at(3, 96), "1": at(4), "2": {"hex": "08000000"}}, memory))
    assert found == {
        "entry": "k", "grid": [4, 1, 1], "block": [64, 1, 1], "shared": 0,
        "params": {"0": {"buffer": 4000}, "1": {"buffer": 64, "init": {"hex": "01000000"}}, "2": {"hex": "08000000"}},
    }  # fmt: skip


def test_two_pointers_into_one_allocation_share_a_buffer() -> None:
    found = document(line({"0": at(3), "1": at(3, 96)}, {"3": {"bytes": 4096}}))
    assert found["launches"][0]["params"] == {"0": {"buffer": "a/b"}, "1": {"buffer": "a/b", "offset": 96}}
    assert found["buffers"] == {"a/b": {"bytes": 4096}}


def test_launches_share_buffers_and_repeated_ones_stand_once() -> None:
    one, two = line({"0": at(3)}, {"3": {"bytes": 64}}), line({"0": at(3)}, {"3": {"bytes": 64}}, entry="l")
    found = compose_recording([one, two, one, one], MODULE.parameter_names)
    assert found is not None
    assert ([x["entry"] for x in found.document["launches"]], found.launches) == (["k", "l"], 4)
    assert found.document["launches"][1]["params"] == {"0": {"buffer": "a"}}


def test_memory_is_named_after_the_parameters_that_point_to_it() -> None:
    memory = {"3": {"bytes": 64}, "4": {"bytes": 64}}
    there, back = line({"0": at(3), "1": at(4)}, memory), line({"0": at(4), "1": at(3)}, memory, grid=[8, 1, 1])
    assert list(document(there, back)["buffers"]) == ["a/b", "b/a"]
    other = line({"0": at(4)}, memory, entry="l")
    assert list(document(line({"0": at(3)}, memory), line({"0": at(3)}, memory, grid=[8, 1, 1]), other)["buffers"]) == [
        "a.0"
    ], "another launch calls other memory so"
    number = line({"0": {"hex": "08" * 8}}, {}, entry="l")
    shared = [line({"0": at(3)}, memory, grid=[k, 1, 1]) for k in (4, 8)]
    assert list(document(*shared, number)["buffers"]) == ["a.0"]
    unnamed = compose_recording(shared, {"k": ("k_param_0", "k_param_1", "n")})
    assert unnamed is not None
    assert list(unnamed.document["buffers"]) == ["buffer0"]


def test_the_same_launch_with_fresh_memory_is_the_same() -> None:
    found = document(*(line({"0": at(k)}, {str(k): {"bytes": 64}}) for k in range(5)))
    assert found["entry"] == "k"


def test_a_launch_is_repeated_whatever_it_has_left_in_memory() -> None:
    first = line({"0": at(3)}, {"3": {"bytes": 4, "init": {"hex": "00000000"}}})
    again = line({"0": at(3)}, {"3": {"bytes": 4}})
    filled = line({"0": at(3)}, {"3": {"bytes": 4, "init": {"hex": "00000000"}, "version": 1}})
    found = document(first, again, filled, again | {"allocations": {"3": {"bytes": 4, "version": 1, "gpu": 0}}})
    assert found["params"] == {"0": {"buffer": 4, "init": {"hex": "00000000"}}}


def test_behind_a_launch_of_another_module_memory_is_another_one() -> None:
    first = line({"0": at(3)}, {"3": {"bytes": 4, "init": {"hex": "00000000"}}})
    other = line({}, {}, entry="other")
    later = line({"0": at(3)}, {"3": {"bytes": 4}}, grid=[8, 1, 1])
    found = document(first, other, later)
    assert [x["params"]["0"] for x in found["launches"]] == [{"buffer": 4, "init": {"hex": "00000000"}}, {"buffer": 4}]


def test_memory_that_the_host_fills_again_is_known_again() -> None:
    first = line({"0": at(3)}, {"3": {"bytes": 4, "init": {"hex": "00000000"}}})
    second = line({"0": at(3)}, {"3": {"bytes": 4, "init": {"hex": "00000000"}, "version": 1}}, grid=[8, 1, 1])
    found = document(first, second)
    assert [x["params"]["0"] for x in found["launches"]] == [{"buffer": 4, "init": {"hex": "00000000"}}] * 2


def test_programmatic_neighbours_are_kept_as_a_pair() -> None:
    plain, early = line({"0": at(3)}, {"3": {"bytes": 64}}), line({"0": at(3)}, {"3": {"bytes": 64}}, programmatic=True)
    found = document(plain, early, early, early)
    assert [x.get("programmatic", False) for x in found["launches"]] == [False, True, True]


def test_shapes_and_gpus() -> None:
    more: dict[str, Any] = {"cluster": [2, 1, 1], "cooperative": True, "gpu": 1}
    found = document(line({"0": at(3), "1": at(3)}, {"3": {"bytes": 64, "gpu": 1}}, **more))
    assert found["launches"][0] | more == found["launches"][0]
    assert found["buffers"]["a/b"]["gpu"] == 1


def test_pointers_in_memory_lead_to_named_buffers() -> None:
    once = {"bytes": 16, "init": {"hex": "00" * 16, "at": {"8": at(4, 32)}}}
    alone = document(line({"0": at(3)}, {"3": once, "4": {"bytes": 64}}))
    assert alone["params"]["0"]["init"]["at"] == {"8": {"buffer": 32}}
    table = {"bytes": 16, "init": {"hex": "00" * 16, "at": {"0": at(4), "8": at(4, 32)}}}
    found = document(line({"0": at(3)}, {"3": table, "4": {"bytes": 64, "init": {"hex": "07"}}}))
    assert found["launches"][0]["params"]["0"]["init"]["at"] == {
        "0": {"buffer": "buffer0"}, "8": {"buffer": "buffer0", "offset": 32},
    }  # fmt: skip
    assert found["buffers"] == {"buffer0": {"bytes": 64, "init": {"hex": "07"}}}


def test_memory_that_points_to_itself_is_not_followed() -> None:
    node = {"bytes": 32, "init": {"hex": "07" * 32, "at": {"8": at(3)}}}
    found = document(line({"0": at(3)}, {"3": node}))
    assert found["buffers"]["a"] == {"bytes": 32, "init": {"hex": "07" * 8}}


MAP = {
    "elemtype": "f32", "rank": 1, "global_dim": [64], "global_stride": [], "box_dim": [32], "element_stride": [1],
    "swizzle_mode": "none",
}  # fmt: skip


def test_tensor_maps_behind_pointers() -> None:
    made = {"tensormap": {**MAP, "global_address": at(4)}}
    one = document(
        line({"0": at(3)}, {"3": {"bytes": 128, "init": {"hex": "00" * 128, "at": {"0": made}}}, "4": {"bytes": 256}})
    )
    assert one["params"]["0"]["tensormap"]["global_address"] == {"buffer": 256}
    both = {"bytes": 256, "init": {"hex": "00" * 256, "at": {"0": made, "128": made}}}
    two = document(line({"0": at(3)}, {"3": both, "4": {"bytes": 256}}))
    assert len(two["launches"][0]["params"]["0"]["tensormaps"]) == 2
    assert two["buffers"] == {"buffer0": {"bytes": 256}}, "both maps describe it"


def test_streams_and_kernels_of_other_modules_are_noted_or_left_out() -> None:
    assert compose_recording([line({}, {}, entry="other")], MODULE.parameter_names) is None
    a, b = line({"0": at(3)}, {"3": {"bytes": 4}}), line({"0": at(3)}, {"3": {"bytes": 4}}, entry="l", stream=1)
    found = compose_recording([a, b], MODULE.parameter_names)
    assert found is not None
    assert found.document["notes"] == list(found.notes)
    build_launches(MODULE, from_object(found.document))
    assert found.notes == (
        "the program launches in several streams: they are checked as one, in the order of the calls",
    )


def test_a_line_that_was_cut_is_left_out() -> None:
    assert read_lines('{"entry": "k"}\n{"entry": "l", "gr') == [{"entry": "k"}]


def test_variables_of_the_module_that_hold_something_else() -> None:
    module = parse_module(MODULE_TEXT.replace(".entry k", ".global .u32 flag;\n.entry k"))
    launches = [line({"0": at(3)}, {"3": {"bytes": 64}}, **more) for more in ({}, {}, {"forgotten": ["flag", "other"]})]
    found = compose_recording(launches, module.parameter_names, dict(module.all_variables))
    assert found is not None
    assert [one.get("forgotten") for one in found.document["launches"]] == [None, ["flag"]]
    built = build_launches(module, from_object(found.document))
    assert [launch.contents for launch in built.launches] == [(), (Contents(("variable", "flag"), 0),)]
    with pytest.raises(InputError, match="list of variables"):
        build_launches(module, from_object({**found.document["launches"][1], "params": {}, "forgotten": ["flags"]}))


def test_what_variables_of_the_module_hold() -> None:
    """Launches with other contents are other launches; those of other modules are left out."""
    module = parse_module(MODULE_TEXT.replace(".entry k", ".global .u32 flag;\n.entry k"))
    held = [{"flag": {"init": {"hex": text}}, "other": {"init": {"hex": "00"}}} for text in ("01000000", "02000000")]
    launches = [line({"0": at(3)}, {"3": {"bytes": 64}}, variables=one) for one in (held[0], held[0], held[1])]
    found = compose_recording(launches, module.parameter_names, dict(module.all_variables))
    assert found is not None
    built = build_launches(module, from_object(found.document))
    flag = "variable", "flag"
    assert [launch.contents for launch in built.launches] == [
        (Contents(flag, 0, ((0, bytes([number, 0, 0, 0])),)),) for number in (1, 2)
    ]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "object of variables"),
        ({"flags": {"init": {"hex": ""}}}, "did you mean flag"),
        ({"flag": 3}, "object"),
        ({"flag": {}}, "content of a variable"),
        ({"flag": {"init": {"hex": "0102030405"}}}, "at most 4 bytes, of which it has 5"),
        ({"flag": {"init": {"hex": "0"}}}, "two hexadecimal digits"),
    ],
)
def test_mistakes_in_variables(given: object, said: str) -> None:
    module = parse_module(MODULE_TEXT.replace(".entry k", ".global .u32 flag;\n.entry k"))
    with pytest.raises(InputError) as error:
        build_launches(module, from_object({"entry": "k", "grid": 1, "block": 32, "variables": given}))
    assert said in " ".join(map(str, (error.value, error.value.expected, error.value.hint)))


@pytest.mark.parametrize("programmatic", [False, True])
def test_of_many_launches_one_of_each_kernel_is_kept(programmatic: bool) -> None:
    many = [line({"0": at(3)}, {"3": {"bytes": 4 * k}}, programmatic=programmatic) for k in range(1, MAX_LAUNCHES + 9)]
    last = line({"0": at(3)}, {"3": {"bytes": 4}}, entry="l")
    found = compose_recording([*many, last], MODULE.parameter_names)
    assert found is not None
    entries = [one["entry"] for one in found.document["launches"]]
    assert entries == ["k"] * MAX_LAUNCHES if programmatic else ["k"] * (MAX_LAUNCHES - 1) + ["l"]
    assert found.notes[0] == f"the program makes {len(many) + 1} different launches, {MAX_LAUNCHES} of them are checked"
