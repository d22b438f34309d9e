"""Kernels for launches of one stream, which may overlap, and the answers about them."""

from __future__ import annotations

from typing import Any

from mcheck.checking.check.modules import check_text
from mcheck.checking.run.case import Options, Settings
from mcheck.checking.run.result import Result
from mcheck.frontend.ptx.launch_reader import from_object

HEAD = ".version 8.7\n.target sm_90a\n.address_size 64\n"
WAIT, TRIGGER, FENCE = "griddepcontrol.wait;", "griddepcontrol.launch_dependents;", "fence.acq_rel.gpu;"
READ, WRITE = "ld.global.u32 %r4, [%rd3];", "st.global.u32 [%rd3], %r3;"
BARRIER = "bar.sync 0;"


def kernel(name: str, *lines: str, width: int = 32, regs: str = "") -> str:
    """A kernel of which each thread has a word of ``x`` (at ``%rd3``) and one of ``y`` (at ``%rd5``); ``%r1`` is its
    index in the CTA.
    """
    code = "\n".join(f"  {line}" for line in lines)
    return f"""
.visible .entry {name}(.param .u64 x, .param .u64 y)
.reqntid {width}, 1, 1
{{
  .reg .b32 %r<8>;
  .reg .b64 %rd<8>;
  .reg .pred %p<4>;
  {regs}
  ld.param.u64 %rd1, [x];
  ld.param.u64 %rd4, [y];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  mad.lo.u32 %r3, %r2, {width}, %r1;
  mul.wide.u32 %rd2, %r3, 4;
  add.u64 %rd3, %rd1, %rd2;
  add.u64 %rd5, %rd4, %rd2;
{code}
  ret;
}}
"""


def launch(entry: str, x: Any = None, y: Any = None, *, programmatic: bool = True, **more: Any) -> dict[str, Any]:
    """A launch of four CTAs whose parameters point to the buffers of those names, or of their own."""
    given = {name: {"buffer": 4096 if on is None else on} for name, on in (("x", x), ("y", y))}
    return {"entry": entry, "grid": 4, "params": given, "programmatic": programmatic, **more}


def checked(module: str, *launches: dict[str, Any], target: str = "sm_90a", **buffers: Any) -> Result:
    """The answer about launches of a module, which may share the buffers ``a``, ``b`` and ``c``."""
    declared = {name: {"bytes": 4096, **buffers.get(name, {})} for name in ("a", "b", "c")}
    given = from_object({"launches": list(launches), "buffers": declared})
    return check_text(HEAD.replace("sm_90a", target) + module, "<ptx>", given, Settings(timeout=60), Options())


def verdict_of(result: Result) -> str:
    """The verdict, whose findings are races between launches and nothing else."""
    races(result)
    return result.verdict


def races(result: Result) -> list[tuple[str, ...]]:
    """The instructions of each race between launches, the later one first."""
    assert all(f.code == "RACE012" for f in result.findings), result.findings
    return [tuple(a.instruction + ";" for a in f.accesses) for f in result.findings]


MAKE = kernel("make", TRIGGER, WRITE)
