"""``mcheck.api.fences``: repairs as data."""

from pathlib import Path

import pytest

from mcheck.api import check, fences
from mcheck.errors import InputError

BUG = Path("litmus/kernels/A05-same-thread-without-proxy-fence.litmus")


def test_a_repair_has_its_lines_and_the_text_is_clean() -> None:
    found = fences(BUG)
    assert found.verdict == "finding"
    assert found.repairs[0]["edits"] == [{"line": 11, "insert": "fence.proxy.async.shared::cta;"}]
    assert found.fixed is not None
    assert check(found.fixed).verdict == "proved"


def test_a_text_may_be_given_and_a_clean_one_has_no_repairs() -> None:
    found = fences(BUG.with_name(f"{BUG.stem}-fixed.litmus").read_text(), timeout=60)
    assert (found.path, found.verdict, found.repairs) == ("test.litmus", "proved", [])
    assert any(each["instruction"].startswith("fence.proxy") for each in found.needed)


@pytest.mark.parametrize("given", [{"timeout": -1.0}, {"costs": "no-such-file.toml"}])
def test_wrong_options_are_refused(given: dict[str, object]) -> None:
    with pytest.raises(InputError):
        fences(BUG, **given)  # type: ignore[arg-type]
    with pytest.raises(InputError):
        fences("no-such-file.litmus")
