"""What the user asks of a file: the file, settings, and the options of ``mcheck check``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcheck.base.records import dataclass

if TYPE_CHECKING:
    from mcheck.findings.baseline import Baseline

DEFAULT_MODEL = "ptx-9.0"


@dataclass(frozen=True, slots=True)
class Case:
    """A file to run or to check; ``expected`` is the verdict from a CSV file, which overrides the file's own line.

    ``text``: the contents of the file if they are known already, as in an editor; then the file is not read.
    """

    path: str
    expected: str | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How files are run and checked. ``model`` is ``None`` if the file, or else the default, decides.

    ``timeout`` (seconds) and ``memory`` (bytes) are for each file, from reading it to its answer; ``processor_time``:
    seconds are those of the processor, whatever else the machine does. ``witnesses``: each outcome comes with a trace.
    ``fixes_where_expected``: fixes are tried for findings of a test that is as expected, too, which a report of many
    tests does not show. ``assume`` names assumptions (``mcheck.ir.assumptions``), ``without`` the passes that are off
    (``mcheck.engines.protocol.passes``).
    """

    model: str | None = None
    engine: str = "auto"
    prop: str = "spec"
    profile: str = "ptx"
    verdict_only: bool = False
    unroll: int = 2
    timeout: float | None = None
    processor_time: bool = False
    memory: int | None = None
    warnings_as_errors: bool = False
    witnesses: bool = False
    fixes_where_expected: bool = True
    assume: tuple[str, ...] = ()
    without: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of ``mcheck check`` beside ``Settings``. ``select`` and ``ignore`` are codes or their prefixes.

    ``launch`` is that of every module, ``launches`` are those of single ones, by path, that no file beside them says.
    ``baseline``: findings that are known already, if the user has a list; ``thorough``: look for all findings;
    ``brief``: stop at the first error, and try no fix of it.
    """

    engine: str = "auto"
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    limit: int | None = None
    launch: LaunchText | None = None
    launches: tuple[tuple[str, LaunchText], ...] = ()
    baseline: Baseline | None = None
    thorough: bool = False
    brief: bool = False

    def launch_of(self, path: str) -> LaunchText | None:
        """The launch that was given for a module."""
        return self.launch or next((launch for module, launch in self.launches if module == path), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchText:
    """The launch of a module as given by the user: the text and path of a JSON file, and command-line options.

    ``fields`` and ``params`` are (name, value) pairs, as on the command line.
    """

    text: str | None = None
    path: str = ""
    fields: tuple[tuple[str, str], ...] = ()
    params: tuple[tuple[str, str], ...] = ()
