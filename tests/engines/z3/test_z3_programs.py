"""What the generator of random programs reaches."""

from __future__ import annotations

import re
from collections import Counter
from itertools import islice, product
from random import Random

import pytest

from mcheck.base.budget import Limit
from mcheck.base.errors import Unsupported
from mcheck.cat import load_model
from mcheck.engines.explicit.enumeration import Enumeration
from mcheck.engines.z3.barrier_constraints import quorum, rounds
from mcheck.engines.z3.path_merge import groups
from mcheck.engines.z3.symbolic_choices import OpenChoice
from mcheck.events.choices import barrier_generations, mbarrier_phases
from mcheck.events.structure import build_structure
from mcheck.frontend.litmus import parse
from tests.fuzz.programs import program

COUNT = 300
NESTED = re.compile(r"if \([^\n]*\{\n(?:(?!  \}).*\n)*  if \(")
TOKEN = re.compile(r"(?:test|try)_wait\.shared::cta\.b64 (?:%p\d+, )?\[bar\], %rd")


@pytest.mark.daily(days=4, least=0)
def test_the_generator_reaches_what_the_engines_do() -> None:
    """Phases that come round again, tokens, partial rounds, branches in branches, locks, one formula for several paths
    and paths that need one each.
    """
    model = load_model("ptx-9.0")
    seen: Counter[str] = Counter()
    for k in range(COUNT):
        text = program(Random(f"quality:{k}"))
        p = parse(text, "quality.litmus")
        seen["nested"] += bool(NESTED.search(text))
        seen["lock"] += ".cas.b32" in text
        seen["token"] += bool(TOKEN.search(text))
        run = Enumeration(p, model, "spec", False, 2, Limit(10), "ptx", False)
        complete = [[path for path in paths if path.end == "end"] for paths in run.paths()]
        for joined in map(groups, complete):
            seen["joined"] += any(len(group.alternatives) > 1 for group in joined)
            seen["apart"] += len(joined) > 1
        for paths in islice(product(*complete), 4):
            s = build_structure(p, paths, ())
            met = barrier_generations.dynamic_choices(s, quorum, rounds)
            seen["partial rounds"] += any(isinstance(choice, OpenChoice) for choice in met or ())
            try:
                found = mbarrier_phases.choices(s, frozenset()) or []
            except Unsupported:
                continue
            reached = max((phase for c in found for o in c.options for _, phase in o.phases), default=0)
            seen["phases"] += reached > 0
            seen["wrap"] += reached > 1
    wanted = ("nested", "lock", "token", "joined", "apart", "partial rounds", "phases", "wrap")
    assert {name for name in wanted if seen[name] < 2} == set(), seen
