"""Launches of kernels in CuTe DSL: those of the corpus, from what their host functions say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mcheck.base.errors import InputError
from mcheck.integrations.arguments import Tensor
from mcheck.integrations.cute import Map, launch
from mcheck.ptx import check

CORPUS = Path(__file__).parents[1] / "simt" / "corpus" / "cute"


def corpus(name: str) -> Any:
    found = json.loads((CORPUS / f"{name}.json").read_text())
    return {key: value for key, value in found.items() if key != "block"}  # the module states it


@pytest.mark.daily(days=4, least=0)
def test_a_launch_has_the_maps_of_the_atoms() -> None:
    tensor = Tensor(shape=(512, 128), dtype="fp32")
    atom = Map(tensor=tensor, box=(64, 32))
    made = launch(grid=[4, 1, 1], shared=41088, arguments=[atom, atom, 2.0])
    assert made == corpus("scaled_sm90")
    assert check(CORPUS / "scaled_sm90.ptx", made).verdict == "proved"


def test_a_cluster_a_swizzle_and_a_block_of_bytes() -> None:
    given = corpus("pair_sm100")
    maps = [value["tensormap"] for value in given["params"].values() if "tensormap" in value]

    def described(found: Any) -> Map:
        shape, box = tuple(found["global_dim"][::-1]), tuple(found["box_dim"][::-1])
        kind = {"f16": "fp16", "bf16": "bf16", "f32": "fp32"}[found["elemtype"]]
        return Map(tensor=Tensor(shape=shape, dtype=kind), box=box, swizzle=found["swizzle_mode"])

    arguments = [described(v["tensormap"]) if "tensormap" in v else v for v in given["params"].values()]
    made = launch(grid=given["grid"], shared=given["shared"], cluster=given["cluster"], arguments=arguments)
    assert maps
    assert made == given


def test_pointers_and_numbers() -> None:
    made = launch(grid=(2,), arguments=[Tensor(shape=(8,), dtype="i64"), True, None, 7])
    assert made == {"grid": [2], "shared": 0, "params": {"0": {"buffer": 64}, "1": 1, "3": 7}}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"box": (8,)}, "the box has 1 dimensions, the tensor 2"),
        ({"box": (8, 8), "swizzle": "16B"}, "unknown swizzle '16B': expected one of none, 32B"),
        ({"box": (8, 8), "tensor": Tensor(shape=(8, 8), dtype="i1")}, "no elements of type 'i1'"),
        ({"box": (8, 8), "tensor": Tensor(shape=(8, 8), dtype="i8", strides=(1, 8))}, "the innermost stride is 8"),
    ],
)
def test_what_no_map_can_be_is_refused(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Map(**{"tensor": Tensor(shape=(8, 8), dtype="fp16"), **fields})
