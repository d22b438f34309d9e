"""Malformed models: each file of ``malformed/`` against its ``.expected``: code, place, message, hint.

After a change of wording run ``PROMOTE=1 pytest tests/cat/test_cat_errors.py`` and read the diff.
"""

import os
from pathlib import Path

import pytest

from mcheck.base.errors import InputError
from mcheck.cat import load_model, parse_model
from mcheck.cat.library import load_test_model
from mcheck.cat.messages import MESSAGES
from tests.effort import effort

HERE = Path(__file__).parent / "malformed"
FILES = sorted(HERE.glob("*.cat"))


def described(error: InputError) -> str:
    span = error.span
    assert span is not None
    lines = [f"{error.code} {Path(span.path).name}:{span.line}:{span.column}+{span.length}", error.message]
    if error.hint:
        lines.append(f"hint: {error.hint}")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_malformed_model_gives_the_expected_error(path: Path) -> None:
    with pytest.raises(InputError) as caught:
        parse_model(path.read_text(encoding="utf-8"), str(path))
    expected = path.with_suffix(".expected")
    if os.environ.get("PROMOTE"):
        expected.write_text(described(caught.value), encoding="utf-8")
    assert described(caught.value) == expected.read_text(encoding="utf-8")


def test_every_expectation_has_its_file() -> None:
    assert {path.stem for path in HERE.glob("*.expected")} == {path.stem for path in FILES}


def test_every_message_has_a_file_that_causes_it() -> None:
    caused = {path.read_text(encoding="utf-8").split()[0] for path in HERE.glob("*.expected")}
    without_a_place = {"CAT004", "CAT042", "CAT048"}
    assert caused | without_a_place == set(MESSAGES)


def test_an_unknown_model_lists_what_there_is() -> None:
    with pytest.raises(InputError) as caught:
        load_model("ptx-7.6")
    assert caught.value.code == "CAT042"
    assert caught.value.message == "unknown model ptx-7.6"
    assert caught.value.hint is not None
    assert caught.value.hint.startswith("did you mean ptx-7.5?")
    assert "sc" in caught.value.hint


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("absent.cat", None, "no such file or directory"),
        ("latin.cat", b"\xe9", "it is not UTF-8 text"),
    ],
)
def test_an_unreadable_file_is_an_input_error(tmp_path: Path, name: str, content: bytes | None, why: str) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        load_model(str(path))
    assert caught.value.code == "CAT004"
    assert caught.value.message == f"cannot read the model {path}: {why}"


def test_a_cycle_of_includes_is_found_and_a_repetition_is_not_one(tmp_path: Path) -> None:
    (tmp_path / "a.cat").write_text('include "b.cat"\n')
    (tmp_path / "b.cat").write_text('include "a.cat"\n')
    with pytest.raises(InputError) as caught:
        load_model(str(tmp_path / "a.cat"))
    assert caught.value.code == "CAT041"
    (tmp_path / "b.cat").write_text("let b = po\n")
    (tmp_path / "a.cat").write_text('include "b.cat" include "b.cat"\nacyclic b as A\n')
    assert load_model(str(tmp_path / "a.cat")).statements


@pytest.mark.parametrize(("name", "hint"), [("ptx-9.0", "did you mean ptx-9.0.cat?"), ("ptx-0.1", None)])
def test_an_include_without_its_suffix_is_recognised(tmp_path: Path, name: str, hint: str | None) -> None:
    (tmp_path / "a.cat").write_text(f'include "{name}"\n')
    with pytest.raises(InputError) as caught:
        load_model(str(tmp_path / "a.cat"))
    assert (caught.value.code, caught.value.hint) == ("CAT040", hint)


def test_files_that_include_each_other_twice_end(tmp_path: Path) -> None:
    depth = 30
    for number in range(depth):
        (tmp_path / f"m{number}.cat").write_text(f'include "m{number + 1}.cat"\n' * 2)
    (tmp_path / f"m{depth}.cat").write_text("let x = po\n")

    def read() -> None:
        with pytest.raises(InputError) as caught:
            load_model(str(tmp_path / "m0.cat"))
        assert caught.value.code == "CAT044"

    assert effort(read, 10) < 10


def test_an_endless_file_is_no_model() -> None:
    if not os.path.exists("/dev/zero"):
        pytest.skip("this system has no endless file")
    with pytest.raises(InputError) as caught:
        load_model("/dev/zero")
    assert caught.value.message == "cannot read the model /dev/zero: it has more than 1 MiB"


@pytest.mark.parametrize("name", ["../m.cat", "/m.cat", "pipe.cat", "absent.cat"])
def test_a_model_that_a_test_may_not_name(tmp_path: Path, name: str) -> None:
    """A model that a test names is read from the folder of the test, and is a file."""
    (tmp_path / "m.cat").write_text("acyclic po as A\n")
    (tmp_path / "sub").mkdir()
    os.mkfifo(tmp_path / "sub" / "pipe.cat")
    with pytest.raises(InputError) as caught:
        load_test_model(name, str(tmp_path / "sub" / "a.litmus"))
    assert caught.value.code == "CAT048"
    assert load_test_model("m.cat", str(tmp_path / "a.litmus")).statements
