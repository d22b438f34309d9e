"""``assert_clean``: silent for a kernel that is right, the report of ``mcheck check`` for one that is not."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from benchmarks.modules import FOLDER, cases
from mcheck.base.errors import InputError
from mcheck.integrations.testing import assert_clean
from tests.simt.grid.test_grid_answers import HEAD, OPEN

MODULE = FOLDER / "cuda" / "dependent.ptx"
LAUNCH = MODULE.with_suffix(".json")
TWIN = next(case for case in cases() if case.path == MODULE and case.edits)


def test_a_kernel_that_is_right_passes_and_the_answer_comes_back() -> None:
    assert assert_clean(MODULE, launch=LAUNCH).verdict == "proved"


def test_the_report_is_the_message() -> None:
    with pytest.raises(AssertionError, match="RACE001") as failed:
        assert_clean(TWIN.text(), launch=TWIN.launch())
    assert "--> <ptx>:52:" in str(failed.value)
    assert "from dependent.cu:" in str(failed.value)


def test_a_compiled_kernel_is_checked_on_a_grid() -> None:
    compiled = SimpleNamespace(
        asm={
            "ptx": MODULE.read_text(encoding="utf-8") + "\n// .reqntid is not there: the warps of the metadata count\n"
        },
        src=SimpleNamespace(signature={"source": "*fp32", "target": "*fp32", "factor": "fp32"}),
        metadata=SimpleNamespace(name="dependent", num_warps=4, num_ctas=1, shared=0, tensordesc_meta=[]),
    )
    with pytest.raises(InputError, match="is checked on a grid"):
        assert_clean(compiled)
    with pytest.raises(AssertionError, match="no parameter"):  # Triton's modules have two more parameters
        assert_clean(compiled, (8,), [{"buffer": 4096}, {"buffer": 4096}, 2.0])


def test_what_is_wrong_with_the_launch_is_told() -> None:
    with pytest.raises(AssertionError, match="grid"):
        assert_clean(MODULE, launch={"block": 128})


@pytest.mark.daily(days=3, least=0)
def test_an_answer_that_is_not_certain_passes_only_where_that_is_said() -> None:
    body, _, size = OPEN["counter"]
    text, buffer = f"{HEAD}{body}  ret;\n}}\n", {"buffer": size}
    launch = {"grid": 20, "params": {"a": buffer, "b": buffer}}
    with pytest.raises(AssertionError, match="bounded"):
        assert_clean(text, launch=launch)
    assert assert_clean(text, launch=launch, bounded=True).verdict == "bounded"
