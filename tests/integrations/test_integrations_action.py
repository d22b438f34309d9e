"""The GitHub action's own step, run as a runner would; what code scanning gets; the hooks of pre-commit."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mcheck.tools.cli.main import main

yaml = pytest.importorskip("yaml", reason="PyYAML, which comes with mkdocs, is not installed")

ROOT = Path(__file__).parents[2]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
STEPS = ACTION["runs"]["steps"]
GOOD = (ROOT / "litmus" / "classic" / "MP+rel+acq+guarded.litmus").read_text()
RACE = (ROOT / "litmus" / "classic" / "MP+rel+rlx.litmus").read_text()


def step(name: str) -> dict[str, Any]:
    return next(s for s in STEPS if s.get("name") == name)


def value(expression: str, inputs: dict[str, str]) -> str:
    """An expression of the action that is an input."""
    found = re.fullmatch(r"\$\{\{ inputs\.([\w-]+) \}\}", expression)
    assert found is not None, expression
    return inputs.get(found[1], ACTION["inputs"][found[1]]["default"])


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash to run the step with")
class TestTheStep:
    @pytest.fixture
    def repository(self, tmp_path: Path) -> Path:
        launcher = tmp_path / "temp" / "mcheck" / "bin" / "mcheck"
        launcher.parent.mkdir(parents=True)
        launcher.write_text(f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(ROOT))} exec "{sys.executable}" -m mcheck "$@"\n')
        launcher.chmod(0o755)
        folder = tmp_path / "repository"
        folder.mkdir()
        return folder

    @pytest.mark.parametrize(("cuda", "wanted"), [("true", "/action[cuda]"), ("false", "/action")])
    def test_the_compiler_for_cuda_is_installed_if_asked_for(self, tmp_path: Path, cuda: str, wanted: str) -> None:
        log, python = tmp_path / "log", tmp_path / "temp" / "mcheck" / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.write_text(f'#!/bin/sh\necho "$@" >> {shlex.quote(str(log))}\n')
        python.chmod(0o755)
        chosen = step("Install mcheck")
        given = {"steps.python.outputs.python-path": str(python), "inputs.cuda": cuda}
        names = {name: text.removeprefix("${{ ").removesuffix(" }}") for name, text in chosen["env"].items()}
        environment = {name: given[text] for name, text in names.items()}
        environment |= {"RUNNER_TEMP": str(tmp_path / "temp"), "GITHUB_ACTION_PATH": "/action", "PATH": "/usr/bin:/bin"}
        subprocess.run(["bash", "-e", "-c", chosen["run"]], env=environment, timeout=60, check=True)
        assert log.read_text().splitlines()[-1].split()[-1] == wanted

    def run(self, repository: Path, **inputs: str) -> tuple[int, str, str]:
        inputs = {name.replace("_", "-"): text for name, text in inputs.items()}
        chosen = step("Run mcheck")
        output = repository.parent / "output"
        environment = {name: value(text, inputs) for name, text in chosen["env"].items()}
        environment |= {"PATH": "/usr/bin:/bin", "GITHUB_OUTPUT": str(output)}
        environment["RUNNER_TEMP"] = str(repository.parent / "temp")
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", chosen["run"]],
            capture_output=True, text=True, cwd=repository, env=environment, timeout=60, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout, output.read_text() if output.exists() else ""

    def test_findings_become_annotations_and_sarif_in_one_run(self, repository: Path) -> None:
        (repository / "a b.litmus").write_text(RACE.replace("expect race", ""))
        (repository / "good.litmus").write_text(GOOD)
        status, out, told = self.run(repository, paths="a b.litmus\ngood.litmus\n")
        assert status == 1
        assert told == "exit-status=1\n"
        assert out.startswith("::error file=a b.litmus,line=")
        (run,) = json.loads((repository / "mcheck.sarif").read_text())["runs"]
        assert {result["ruleId"] for result in run["results"]} <= {
            rule["id"] for rule in run["tool"]["driver"]["rules"]
        }
        assert len(run["results"]) > 0

    def test_unknown_answers_fail_unless_they_may_pass(self, repository: Path) -> None:
        text = "PTX x\n{ .global .u32 x = 0; }\nP@cta 0 {\n  bfe.u32 r0, r0, 1, 1;\n}\nexists (x == 0)\n"
        (repository / "unmodelled.litmus").write_text(text)
        assert self.run(repository)[0] == 3
        assert self.run(repository, fail_on_unknown="false")[0] == 0

    @pytest.mark.daily(days=3, least=0)
    def test_options_may_stand_on_several_lines(self, repository: Path) -> None:
        (repository / "racy.litmus").write_text(RACE.replace("expect race", ""))
        assert self.run(repository, options="--profile strict\n--ignore RACE\n")[0] == 0
        assert self.run(repository, options="--profile strict\n")[0] == 1

    def test_an_input_is_never_a_program(self, repository: Path) -> None:
        status, out, _ = self.run(repository, command="check; touch here")
        assert status == 2
        assert "neither" in out
        self.run(repository, paths="$(touch here)", options="--model `touch here`")
        assert not (repository / "here").exists()


def test_code_scanning_gets_the_file_that_the_step_writes() -> None:
    assert step("Upload to code scanning")["with"]["sarif_file"] == step("Run mcheck")["env"]["SARIF"]


def test_a_file_that_cannot_be_read_is_annotated_at_its_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.litmus").write_text("PTX x\n")
    assert main(["check", "x.litmus", "--format", "github"]) == 2
    assert "file=x.litmus,line=1,col=6" in capsys.readouterr().out


def test_the_hooks_call_commands_that_there_are(tmp_path: Path) -> None:
    (tmp_path / "good.litmus").write_text(GOOD)
    shutil.copy(ROOT / "tests/simt/hand_over.ptx", tmp_path / "good.ptx")
    (tmp_path / "good.json").write_text('{"grid": 1, "params": {"rows": 0}}')
    for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text()):
        program, *arguments = shlex.split(hook["entry"])
        assert program == "mcheck"
        (file,) = (name for name in ("good.litmus", "good.ptx") if re.search(hook["files"], f"kernels/{name}"))
        assert main([*arguments, str(tmp_path / file)]) == 0
