"""Launches from compiled kernels: the compilers' objects are stood in for by what of them is read."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mcheck.base.errors import InputError
from mcheck.integrations.arguments import Tensor, buffer
from mcheck.integrations.triton import launch, parameter_names

MAP = {"swizzle": 3, "elem_size": 2, "elem_type": 6, "block_size": [128, 64], "fp4_padded": False, "is_im2col": False}


def compiled(signature: dict[str, Any], ptx: str = ".reqntid 128", **metadata: Any) -> Any:
    """What of Triton's ``CompiledKernel`` the integration reads."""
    given = {"name": "kernel", "num_ctas": 1, "num_warps": 4, "shared": 1024, "tensordesc_meta": [],
             "global_scratch_size": 0, "profile_scratch_size": 0}  # fmt: skip
    return SimpleNamespace(
        src=SimpleNamespace(signature=signature), asm={"ptx": ptx}, metadata=SimpleNamespace(**{**given, **metadata})
    )


def test_pointers_and_numbers_become_parameters_in_order() -> None:
    kernel = compiled({"x": "*fp32", "n": "i32", "BLOCK": "constexpr", "scale": "fp32"})
    found = launch(kernel, (8,), {"x": Tensor(shape=(64, 16), dtype="fp32"), "n": 1024, "scale": 2})
    assert found == {
        "entry": "kernel", "grid": [8, 1, 1], "block": [128, 1, 1], "shared": 1024,
        "params": {"0": {"buffer": 4096}, "1": 1024, "2": 2.0, "3": {"buffer": None}, "4": {"buffer": None}},
    }  # fmt: skip


@pytest.mark.parametrize("arguments", [[{"buffer": 8}, 3], [{"buffer": 8}, 3, 64]])
def test_arguments_in_order_may_leave_out_constants(arguments: list[Any]) -> None:
    found = launch(compiled({"x": "*i32", "n": "i32", "BLOCK": "constexpr"}), (1,), arguments)
    assert found["params"]["0"] == {"buffer": 8}
    assert found["params"]["1"] == 3


def test_a_descriptor_becomes_its_map_its_shape_and_its_strides() -> None:
    kernel = compiled({"a": "tensordesc<fp16[128, 64]>"}, tensordesc_meta=[MAP])
    params = launch(kernel, (1,), [Tensor(shape=(512, 256), dtype="fp16")])["params"]
    assert params["0"]["tensormap"] == {
        "global_address": {"buffer": 512 * 256 * 2}, "elemtype": "f16", "rank": 2, "global_dim": [256, 512],
        "global_stride": [512], "element_stride": [1, 1], "interleave_layout": "none", "swizzle_mode": "128B",
        "fill_mode": "zero", "box_dim": [64, 128],
    }  # fmt: skip
    assert [params[str(i)] for i in range(1, 5)] == [512, 256, 256, 1]


def test_a_descriptor_object_is_read_as_it_is() -> None:
    base = np.zeros((64, 32), dtype=np.float16)
    described = SimpleNamespace(base=base, shape=[64, 32], strides=[32, 1], block_shape=[16, 32], padding="nan")
    meta = {**MAP, "block_size": [16, 32], "swizzle": 2}
    params = launch(compiled({"a": "tensordesc<fp16[16, 32]>"}, tensordesc_meta=[meta]), (1,), [described])["params"]
    found = params["0"]["tensormap"]
    assert found["global_address"] == {"buffer": 4096}
    assert (found["swizzle_mode"], found["fill_mode"], found["box_dim"]) == ("64B", "nan", [32, 16])


def test_without_tensor_copies_a_descriptor_is_a_pointer_with_its_numbers() -> None:
    params = launch(compiled({"a": "tensordesc<fp16[16, 32]>"}), (1,), [Tensor(shape=(64, 32), dtype="fp16")])["params"]
    assert list(params.values())[:9] == [{"buffer": 4096}, 64, 32, 32, 1, 0, 0, 64, 32]


def test_clusters_multiply_the_grid_and_all_warps_are_of_the_module() -> None:
    kernel = compiled({}, ptx=".visible .entry kernel()\n.reqntid 256\n", num_ctas=2, global_scratch_size=128)
    found = launch(kernel, (4, 3), [])
    assert (found["grid"], found["block"], found["cluster"]) == ([8, 3, 1], [256, 1, 1], [2, 1, 1])
    assert found["params"]["0"] == {"buffer": 128 * 4 * 3 * 2}


def test_tuples_are_flat() -> None:
    found = launch(compiled({"t": ("*fp32", "constexpr", "i32")}), (1,), [({"buffer": 4}, 5, 6)])
    assert [found["params"][i] for i in "01"] == [{"buffer": 4}, 6]


def test_parameters_have_the_names_of_the_arguments() -> None:
    kernel = compiled(
        {"x": "*fp32", "BLOCK": "constexpr", "a": "tensordesc<fp16[128, 64]>", "n": "i32"}, tensordesc_meta=[MAP]
    )
    arguments = [{"buffer": 4}, Tensor(shape=(512, 256), dtype="fp16"), 6]
    assert parameter_names(kernel, arguments) == ["x", "a", "", "", "", "", "n"]
    assert len(launch(kernel, (1,), arguments)["params"]) == 9  # and two that Triton appends


def test_a_file_of_the_ir_numbers_its_arguments() -> None:
    kernel = compiled({0: "*i32", 1: "i32"})  # type: ignore[dict-item]  # what triton.compile("kernel.ttgir") gives
    assert parameter_names(kernel, [{"buffer": 4}, 6]) == ["0", "1"]
    assert launch(kernel, (1,), [{"buffer": 4}, 6])["params"]["1"] == 6
    with pytest.raises(InputError, match="the kernel takes 2 arguments, 1 given: 0, 1"):
        launch(kernel, (1,), [{"buffer": 4}])


def test_an_address_that_is_passed_as_a_number_is_a_buffer() -> None:
    assert launch(compiled({"p": "i64"}), (1,), [{"buffer": 64}])["params"]["0"] == {"buffer": 64}
    with pytest.raises(InputError, match="expected a number for type i32, got dict"):
        launch(compiled({"n": "i32"}), (1,), [{"buffer": 64}])


def test_any_number_of_rounds_is_passed_on() -> None:
    assert launch(compiled({"n": "i32"}), (1,), ["any"])["params"]["0"] == "any"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "argument 'x' of kernel"),
        ({"x": {"buffer": 4}, "m": 1}, "no argument 'm': it has x, n"),
        ([1, 2, 3], "the kernel takes 2 arguments, 3 given: x, n"),
        ([4096, 1], "got int for a pointer"),
        ([{"buffer": 4}, "many"], "expected a number for type i32, got str"),
    ],
)
def test_wrong_arguments_are_named(arguments: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        launch(compiled({"x": "*i32", "n": "i32"}), (1,), arguments)


def test_a_grid_has_one_to_three_positive_numbers() -> None:
    for grid in ((), (0,), (1, 1, 1, 1), (1.5,)):
        with pytest.raises(InputError, match="expected one to three positive numbers"):
            launch(compiled({}), grid, [])


def test_a_descriptor_wants_a_shape() -> None:
    with pytest.raises(InputError, match="got int for the tensor descriptor 'a'"):
        launch(compiled({"a": "tensordesc<fp16[16, 32]>"}), (1,), [4])


def test_tensors_know_their_bytes() -> None:
    assert Tensor(shape=(4, 8), dtype="fp16").bytes == 64
    assert Tensor(shape=(4, 8), dtype="fp16", strides=(16, 1)).bytes == (3 * 16 + 8) * 2
    assert buffer(np.zeros(12, dtype=np.int8)) == {"buffer": 12}
    with pytest.raises(InputError, match="unknown element type 'half'"):
        Tensor(shape=(1,), dtype="half")
    with pytest.raises(InputError, match="2 dimensions has 1 strides"):
        Tensor(shape=(1, 1), dtype="i8", strides=(1,))
