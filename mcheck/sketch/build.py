"""The class ``Sketch``: objects and roles, text in block form, program, findings."""

from __future__ import annotations

from mcheck.answers.result import Answer
from mcheck.base.errors import InputError, Span
from mcheck.base.records import replace
from mcheck.ir.ops import Op
from mcheck.ir.program import Program
from mcheck.sketch.role import Role
from mcheck.sketch.text import Ref

Numbers = int | tuple[int, int] | range | None


class Sketch:
    """A kernel sketch: the synchronisation of a kernel, as roles, barriers and copies."""

    def __init__(self, name: str, *, doc: str = "", target: str | None = None) -> None:
        self.name = name
        self._doc = doc
        self._target = target
        self._objects: list[str] = []
        self._roles: list[Role] = []
        self._expect: str | None = None

    # --- objects --------------------------------------------------------------------------------------------

    def array(
        self, name: str, *dims: int, elem: str = "b8", space: str = "shared", align: int = 128, init: str | None = None
    ) -> Ref:
        """Declare an array of ``dims`` elements; ``.shared`` exists once per CTA, ``.global`` once."""
        shape = "".join(f"[{dim}]" for dim in dims)
        value = f" = {init}" if init is not None else ""
        self._objects.append(f"  .{space} .align {align} .{elem} {name}{shape}{value};")
        return Ref(name, space, elem)

    def word(self, name: str, *, space: str = "global", elem: str = "u32", init: int | None = None) -> Ref:
        """Declare a single word, such as a flag or a counter."""
        value = f" = {init}" if init is not None else ""
        self._objects.append(f"  .{space} .{elem} {name}{value};")
        return Ref(name, space, elem)

    def mbarriers(self, name: str, count: int) -> Ref:
        """Declare an array of mbarrier objects, not yet initialised."""
        self._objects.append(f"  .shared .align 8 .b64 {name}[{count}];")
        return Ref(name, "shared", "b64")

    def mbarrier(self, name: str) -> Ref:
        """Declare one mbarrier object, not yet initialised."""
        self._objects.append(f"  .shared .align 8 .b64 {name};")
        return Ref(name, "shared", "b64")

    # --- roles ------------------------------------------------------------------------------------------------

    def role(
        self,
        name: str,
        *,
        gpu: Numbers = None,
        cluster: Numbers = None,
        cta: Numbers = 0,
        warp: Numbers = None,
        lane: Numbers = None,
    ) -> Role:
        """Declare a role and its threads; ranges are half-open: ``warp=(1, 5)``. For ``with``, or as a decorator."""
        places = {"gpu": gpu, "cluster": cluster, "cta": cta, "warp": warp, "lane": lane}
        placement = ", ".join(f"{key} {_range(value)}" for key, value in places.items() if value is not None)
        found = Role(name, placement)
        self._roles.append(found)
        return found

    def expect(self, *kinds: str) -> None:
        """Set what ``mcheck check`` should find: clean, race, undefined, deadlock."""
        self._expect = " | ".join(kinds)

    # --- results ------------------------------------------------------------------------------------------------

    def text(self) -> str:
        """The sketch in block form."""
        return "\n".join(line for line, _ in self._lines()) + "\n"

    def _lines(self) -> list[tuple[str, tuple[str, int] | None]]:
        out: list[tuple[str, tuple[str, int] | None]] = [(f"PTX {self.name}", None)]
        if self._doc:
            out.append((f'"{self._doc}"', None))
        if self._target:
            out.append((f"target {self._target}", None))
        out += [("{", None), *((line, None) for line in self._objects), ("}", None)]
        for role in self._roles:
            out += [(f"{role.name}@{role.placement} {{", None), *role.lines, ("}", None)]
        if self._expect:
            out.append((f"expect {self._expect}", None))
        return out

    def program(self) -> Program:
        """The program, whose operations have their places in the Python source."""
        from mcheck.frontend.litmus import parse

        lines = self._lines()
        where = {number: place for number, (_, place) in enumerate(lines, start=1) if place is not None}
        try:
            program = parse(self.text(), f"<sketch {self.name}>")
        except InputError as error:
            if error.span is not None and error.span.line in where:
                path, line = where[error.span.line]
                error.span = Span(path, line, 1)
            raise
        known: dict[int, Op] = {}
        kept: list[Op] = []

        def moved(op: Op) -> Op:
            found = known.get(id(op))
            if found is None:
                place = where.get(op.span.line) if op.span is not None else None
                found = replace(op, span=Span(place[0], place[1], 1)) if place is not None else op
                known[id(op)] = found
                kept.append(op)
            return found

        threads = tuple(replace(t, code=tuple(map(moved, t.code))) for t in program.threads)
        return replace(program, threads=threads)

    def check(self, *, profile: str = "ptx", model: str = "ptx-9.0", timeout: float | None = None) -> Answer:
        """Find races, undefined behaviour and deadlocks."""
        from mcheck.cat import load_model
        from mcheck.checking.policy.ask import ask
        from mcheck.checking.policy.question import Completeness, Question

        question = Question(about=Completeness.FINDINGS, profile=profile, timeout=timeout)
        return ask(self.program(), load_model(model), question, "protocol")


def _range(value: Numbers) -> str:
    if isinstance(value, tuple):
        return f"{value[0]}..{value[1]}"
    if isinstance(value, range):
        return f"{value.start}..{value.stop}"
    return str(value)


def assert_clean(sketch: Sketch, *, profile: str = "ptx", timeout: float | None = 60) -> Answer:
    """Raise ``AssertionError`` with the findings unless the sketch is proved to have no error."""
    found = sketch.check(profile=profile, timeout=timeout)
    if found.verdict.is_open:
        raise AssertionError(f"{sketch.name}: {found.verdict}: {found.reason}")
    if any(f.severity == "error" for f in found.findings):
        raise AssertionError(f"{sketch.name}:\n{format_findings(found)}")
    return found


def assert_finds(sketch: Sketch, kind: str, *, profile: str = "ptx", timeout: float | None = 60) -> Answer:
    """Raise ``AssertionError`` unless there is a finding of this kind (race, undefined, deadlock) or code."""
    found = sketch.check(profile=profile, timeout=timeout)
    if not any(kind in (f.kind, f.code) and f.severity != "advice" for f in found.findings):
        raise AssertionError(f"{sketch.name}: no {kind} found:\n{format_findings(found)}")
    return found


def format_findings(found: Answer) -> str:
    """The findings as text."""
    from mcheck.report.bugs import describe_findings
    from mcheck.report.lines import plain

    text = [plain(line) for line in describe_findings(found.findings, "", None, trace=True)]
    return "\n".join(text) or f"{found.verdict}, no finding"
