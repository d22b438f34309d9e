"""Random small programs, as text of either container."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

SCOPES = ("cta", "gpu", "gpu", "sys")
VALUES = (0, 1, 1, 2)


@st.composite
def _generic(draw: st.DrawFn, registers: list[str], number: int) -> tuple[str, int]:
    """An instruction of the table dialect, and how many memory events it has."""
    place = draw(st.sampled_from(("x", "x", "x", "y", "y")))
    value = draw(st.sampled_from((*map(str, VALUES), *registers)))
    scope = draw(st.sampled_from(SCOPES))
    new = f"r{number}"
    kind = draw(st.sampled_from(("load", "load", "load", "store", "store", "store", "atomic", "fence", "fence", "alu")))
    match kind:
        case "load":
            registers.append(new)
            sem = draw(st.sampled_from(("weak", f"relaxed.{scope}", f"relaxed.{scope}", f"acquire.{scope}")))
            return f"ld.{sem} {new}, {place}", 1
        case "store":
            sem = draw(st.sampled_from(("weak", f"relaxed.{scope}", f"relaxed.{scope}", f"release.{scope}")))
            return f"st.{sem} {place}, {value}", 1
        case "atomic":
            sem = draw(st.sampled_from(("relaxed", "acquire", "release", "acq_rel")))
            op = draw(st.sampled_from(("add", "exch", "cas", "or", "red")))
            if op == "red":
                return f"red.{sem}.{scope}.add {place}, {draw(st.sampled_from(VALUES))}", 2
            registers.append(new)
            operands = f"{draw(st.sampled_from(VALUES))}, {value}" if op == "cas" else value
            return f"atom.{sem}.{scope}.{op} {new}, {place}, {operands}", 2
        case "fence":
            return f"fence.{draw(st.sampled_from(('acq_rel', 'sc', 'sc')))}.{scope}", 0
    if not registers:
        return f"fence.sc.{scope}", 0
    source = draw(st.sampled_from(registers))
    op = draw(st.sampled_from(("add", "and_", "ld")))
    registers.append(new)
    return (f"ld {new}, {source}" if op == "ld" else f"{'add' if op == 'add' else 'sub'} {new}, {source}, 1"), 0


@st.composite
def _proxied(draw: st.DrawFn, registers: list[str], number: int) -> tuple[str, int]:
    new = f"r{number}"
    scope = draw(st.sampled_from(SCOPES))
    value = draw(st.sampled_from((*map(str, VALUES), *registers)))
    kind = draw(st.sampled_from(("st", "st", "ld", "ld", "sust", "suld", "tld", "fence", "fence", "fence", "sc")))
    match kind:
        case "st":
            return f"st.{draw(st.sampled_from(('weak', f'relaxed.{scope}')))} {draw(st.sampled_from('xg'))}, {value}", 1
        case "ld":
            registers.append(new)
            sem = draw(st.sampled_from(("weak", f"relaxed.{scope}", f"acquire.{scope}")))
            return f"ld.{sem} {new}, {draw(st.sampled_from('xg'))}", 1
        case "sust":
            return f"sust.{draw(st.sampled_from(('weak', f'relaxed.{scope}')))} s, {value}", 1
        case "suld":
            registers.append(new)
            return f"suld.weak {new}, s", 1
        case "tld":
            registers.append(new)
            return f"tld.weak {new}, t", 1
        case "fence":
            return f"fence.proxy.{draw(st.sampled_from(('alias', 'surface', 'texture')))}", 0
    return f"fence.{draw(st.sampled_from(('sc', 'acq_rel')))}.{scope}", 0


@st.composite
def tables(draw: st.DrawFn, *, most: int = 6, proxies: bool = False) -> str:
    """A program of the table form with 1 to 3 threads and at most ``most`` memory events."""
    columns: list[list[str]] = []
    used: list[list[str]] = []
    left = most
    places = []
    barrier = not proxies and draw(st.integers(0, 5)) == 0
    for k in range(draw(st.sampled_from((1, 2, 2, 2, 3, 3)))):
        places.append(f"P{k}@cta {draw(st.integers(0, 1))},gpu {draw(st.sampled_from((0, 0, 0, 1)))}")
        registers: list[str] = []
        code: list[str] = []
        label = None
        for number in range(draw(st.integers(1, 4))):
            if label is None and registers and draw(st.integers(0, 6)) == 0:
                label = f"LC{k}"
                code.append(
                    f"{draw(st.sampled_from(('beq', 'bne')))} {registers[-1]}, {draw(st.sampled_from(VALUES))}, {label}"
                )
            if barrier and draw(st.integers(0, 2)) == 0:
                code.append(f"bar.cta.{draw(st.sampled_from(('sync', 'sync', 'arrive')))} {draw(st.integers(1, 2))}")
            text, events = draw(_proxied(registers, number) if proxies else _generic(registers, number))
            if events <= left:
                left -= events
                code.append(text)
            elif f"r{number}" in registers:
                registers.remove(f"r{number}")
        if label is not None:
            code.append(f"{label}:")
        columns.append(code)
        used.append([f"P{k}:{r}" for r in registers])
    rows = [" | ".join(places) + " ;"]
    for n in range(max(len(c) for c in columns)):
        rows.append(" | ".join(c[n] if n < len(c) else "" for c in columns) + " ;")
    terms = [*(r for u in used for r in u), "x", *(() if proxies else ("y",))]
    init = "x = 0; s @ surface aliases x; t @ texture aliases x; g @ generic aliases x;" if proxies else "x = 0; y = 0;"
    return (
        f"PTX random\n{{ {init} }}\n"
        + "\n".join(rows)
        + f"\nlocations [{'; '.join(terms)};]\n{draw(conditions(terms))}\n"
    )


@st.composite
def conditions(draw: st.DrawFn, terms: list[str]) -> str:
    def atom() -> str:
        operator = draw(st.sampled_from(("==", "==", "!=", "<", ">=")))
        return f"{draw(st.sampled_from(terms))} {operator} {draw(st.integers(0, 2))}"

    formula = atom()
    for _ in range(draw(st.integers(0, 2))):
        other = draw(st.sampled_from(("{}", "{}", "~({})"))).format(atom())
        formula = f"({formula}) {draw(st.sampled_from(('/' + chr(92), chr(92) + '/')))} {other}"
    return f"{draw(st.sampled_from(('exists', 'exists', '~exists', 'forall')))} ({formula})"


WIDTHS = (("u8", 1), ("u16", 2), ("u32", 4), ("v2.u16", 4), ("u32", 4), ("u64", 8))


@st.composite
def blocks(draw: st.DrawFn, *, most: int = 5, mixed: bool = False) -> str:
    """A program of the block form: clusters, acquire and release fences, guards; ``mixed``: accesses of any size."""
    roles, terms = [], []
    left = most
    clustered = draw(st.booleans())
    for k in range(draw(st.sampled_from((1, 2, 2, 2, 3)))):
        cluster = f"cluster {draw(st.integers(0, 1))}, " if clustered else ""
        code: list[str] = []
        registers: list[str] = []
        for number in range(draw(st.integers(1, 4))):
            before = list(registers)
            text, events = draw(_typed(registers, number, mixed=mixed))
            if events > left:
                registers[:] = before
                continue
            left -= events
            if before and not mixed and draw(st.integers(0, 4)) == 0:
                source = before[-1]
                if draw(st.booleans()):
                    code.append(f"setp.ne.u32 %p{number}, {source}, {draw(st.integers(0, 1))};")
                    registers[:] = before
                    text = f"@{draw(st.sampled_from(('', '!')))}%p{number} {text}"
                else:
                    registers[:] = before
                    code.append(f"if ({source} == {draw(st.integers(0, 2))}) {{")
                    text += (
                        " }" if draw(st.booleans()) else f" }} else {{ st.weak.u32 [y], {draw(st.integers(1, 2))}; }}"
                    )
            code.append(text)
        roles.append(f"P{k}@{cluster}cta {draw(st.integers(0, 1))} {{ {' '.join(code)} }}")
        guarded = " ".join(c for c in code if c[0] in "@i")
        terms += [f"P{k}:{r}" for r in registers if f" {r}" not in guarded]
    terms += ["q"] if mixed else ["x", "y"]
    init = ".global .u64 q = 513; .global .u32 y;" if mixed else ".global .u32 x; .global .u32 y = 1;"
    return (
        f"PTX random\n{{ {init} }}\n"
        + "\n".join(roles)
        + f"\nlocations [{'; '.join(terms)};]\n{draw(conditions(terms))}\n"
    )


@st.composite
def _typed(draw: st.DrawFn, registers: list[str], number: int, *, mixed: bool) -> tuple[str, int]:
    scope = draw(st.sampled_from(("cta", "cluster", "gpu", "sys")))
    kind = draw(st.sampled_from(("load", "load", "store", "store", "atomic", "fence", "fence")))
    value = draw(st.sampled_from(("1", "2", *(r for r in registers if not mixed))))
    size = draw(st.sampled_from(WIDTHS if mixed else (("u32", 4),)))
    name, width = size
    if mixed:
        place = f"[q+{draw(st.sampled_from({4: (0, 0, 0, 4), 8: (0,)}.get(width, (0, 0, 2))))}]"
    else:
        place = f"[{draw(st.sampled_from(('x', 'x', 'y')))}]"
    match kind:
        case "load":
            sems = ("weak", f"relaxed.{scope}", f"acquire.{scope}", *(() if "v2" in name else ("volatile",)))
            sem = draw(st.sampled_from(sems))
            if "v2" in name:
                registers += [f"h{number}", f"i{number}"]
                return f".reg .u16 h{number}, i{number}; ld.{sem}.global.{name} {{h{number}, i{number}}}, {place};", 2
            prefix = {1: "c", 2: "h", 4: "r", 8: "d"}[width]
            registers.append(f"{prefix}{number}")
            declared = "" if width == 4 else f".reg .u{max(16, 8 * width)} {prefix}{number}; "
            return f"{declared}ld.{sem}.global.{name} {prefix}{number}, {place};", 1
        case "store":
            sem = draw(st.sampled_from(("weak", f"relaxed.{scope}", f"release.{scope}")))
            if "v2" in name:
                pair = f"{{k{number}, k{number}}}"
                return f".reg .u16 k{number}; mov.u16 k{number}, 5; st.{sem}.global.v2.u16 {place}, {pair};", 2
            if mixed and width != 4:
                declared = f".reg .u{max(16, 8 * width)} k{number};"
                declared += f" mov.u{max(16, 8 * width)} k{number}, {3 if width < 8 else 772};"
                return f"{declared} st.{sem}.global.{name} {place}, k{number};", 1
            return f"st.{sem}.global.u32 {place}, {value};", 1
        case "atomic":
            registers.append(f"r{number}")
            place = "[q]" if mixed else place
            sem = draw(st.sampled_from(("relaxed", "acquire", "release", "acq_rel")))
            op = draw(st.sampled_from(("add.u32", "exch.b32", "cas.b32")))
            operands = f"{draw(st.integers(0, 1))}, {value}" if op == "cas.b32" else value
            return f"atom.{sem}.{scope}.global.{op} r{number}, {place}, {operands};", 2
    return f"fence.{draw(st.sampled_from(('sc', 'acq_rel', 'acquire', 'release')))}.{scope};", 0


def tried(examples: int) -> settings:
    """So many programs: always the same ones where they are few, as in the tests."""
    return settings(
        deadline=None,
        max_examples=examples,
        database=None,
        derandomize=examples < 100,
        print_blob=False,
        suppress_health_check=list(HealthCheck),
    )
