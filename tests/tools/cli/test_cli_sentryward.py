"""``python -m benchmarks.sentryward``: what the other tool is told, and how answers are judged and summed up."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.sentryward import Ran, Row, describe, judge, read_rows, summarize

MODULE = """\
.visible .entry first(.param .u32 first_param_0) { ret; }
.visible .entry second(
	.param .u64 .ptr .global .align 16 second_param_0,
	.param .u64 second_param_1,
	.param .u32 second_param_2,
	.param .align 64 .b8 second_param_3[128]
) { ret; }
"""
LAUNCH: dict[str, Any] = {"entry": "second", "grid": [4], "block": [64], "params": {"0": {"buffer": 64}, "2": 7}}
POINTER = {"1": {"buffer": 64}, "3": {"buffer": 128}}


def launch(**more: Any) -> dict[str, Any]:
    return {**LAUNCH, "params": {**LAUNCH["params"], **POINTER}, **more}


def test_numbers_are_told_by_the_names_of_the_entry_and_pointers_are_left_to_it() -> None:
    told = describe(MODULE, launch(cluster=[2], shared=48))
    assert told == {
        "schema": "spverify.kernel-input/v1",
        "entry": "second",
        "launch": {
            "grid_dim": [4, 1, 1],
            "block_dim": [64, 1, 1],
            "cluster_dim": [2, 1, 1],
            "dynamic_shared_bytes": 48,
        },
        "arguments": [{"parameter": "second_param_2", "offset": 0, "type": "u32", "value": 7}],
    }


TILED = {
    "global_address": {"buffer": 65536},
    "elemtype": "f16",
    "rank": 2,
    "global_dim": [64, 512],
    "global_stride": [128],
    "box_dim": [64, 16],
    "element_stride": [1, 1],
    "swizzle_mode": "128B",
}


def test_a_tensor_map_is_told_field_by_field() -> None:
    told = describe(MODULE, launch(params={**POINTER, "2": 7, "3": {"tensormap": TILED}}))
    assert isinstance(told, dict)
    assert told["tma_descriptors"] == [
        {
            "parameter": "second_param_3",
            "offset": 0,
            "object": "tensor of second_param_3",
            "element_type": "f16",
            "rank": 2,
            "global_shape": [64, 512],
            "global_strides_bytes": [128],
            "box_shape": [64, 16],
            "element_strides": [1, 1],
            "interleave": "none",
            "swizzle": "128B",
            "oob_fill": "zero",
        }
    ]


def test_maps_of_one_buffer_share_its_object() -> None:
    shared = {**TILED, "global_address": "a"}
    told = describe(MODULE, launch(params={"0": {"tensormap": shared}, "2": 7, "3": {"tensormap": shared}}))
    assert isinstance(told, dict)
    assert [each["object"] for each in told["tma_descriptors"]] == ["a", "a"]


def test_a_block_is_told_byte_by_byte_without_its_pointers() -> None:
    block = {"hex": "0102" + "00" * 8, "at": {"2": {"buffer": 64}}}
    told = describe(MODULE, launch(params={**POINTER, "2": 7, "3": block}))
    assert isinstance(told, dict)
    assert [(each["offset"], each["type"], each["value"]) for each in told["arguments"]] == [
        (0, "u32", 7),
        (0, "u8", 1),
        (1, "u8", 2),
    ]


def test_what_the_launch_does_not_say_is_left_to_it() -> None:
    told = describe(MODULE, launch(params={"2": 7}))
    assert isinstance(told, dict)
    assert len(told["arguments"]) == 1


@pytest.mark.parametrize(
    ("described", "why"),
    [
        ({"launches": [LAUNCH]}, "several launches"),
        (launch(params={**POINTER, "0": {"tensormap": {"pixels_per_column": 64}}, "2": 7}), "tensor maps of images"),
        (launch(params={**POINTER, "0": {"buffer": 64}, "2": "any"}), "other parameters"),
    ],
)
def test_what_it_cannot_be_told_is_named(described: dict[str, Any], why: str) -> None:
    assert describe(MODULE, described) == why


def row(verdict: str, *also: str) -> Row:
    return Row(
        corpus="launch", label="a", module="", launch="{}", bug=verdict == "finding", verdict=verdict, also=also
    )  # fmt: skip


@pytest.mark.parametrize(
    ("known", "said", "judged"),
    [
        (row("proved"), "proved", "right"),
        (row("proved"), "bounded", "open"),
        (row("proved"), "finding", "wrong"),
        (row("finding"), "finding", "right"),
        (row("finding"), "proved", "wrong"),
        (row("finding", "proved"), "proved", "open"),
        (row("finding"), "unknown", "open"),
    ],
)
def test_an_answer_is_right_wrong_or_open(known: Row, said: str, judged: str) -> None:
    assert judge(known, said) == judged


def test_both_corpora_are_asked_about() -> None:
    rows = list(read_rows())
    assert {one.corpus for one in rows} == {"launch", "corpus"}
    assert len({(one.corpus, one.label) for one in rows}) == len(rows)
    assert {one.verdict for one in rows if one.bug} == {"finding"}


def test_the_sums_name_what_was_not_told_and_not_answered() -> None:
    right, none = Ran("proved", "", 1.0), Ran("unknown", "unsupported: why", 0.25)
    asked = [
        (row("proved"), {"mcheck": right, "SentryWard": right}),
        (row("proved"), {"mcheck": right, "SentryWard": none}),
        (row("proved"), "tensor maps"),
    ]
    assert list(summarize(asked)) == [
        "launch, correct: 3",
        "  mcheck: 2 right, 0 wrong, 0 open; 2.0 s of the processor",
        "  SentryWard: 1 right, 0 wrong, 1 open; 1.2 s of the processor",
        "  not told to SentryWard: 1 (tensor maps)",
        "  no answer of SentryWard: 1 (unsupported: why)",
    ]
