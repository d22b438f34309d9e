"""A launch file to fill in: what the host decides about the kernels of a module, with what the module knows already."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from mcheck.frontend.ptx.launch_arguments import MAP_BYTES, POINTER
from mcheck.frontend.ptx.launch_reader import needs_shared_size
from mcheck.frontend.ptx.mangled_names import demangle
from mcheck.frontend.ptx.module import Function, Module, Parameter
from mcheck.frontend.ptx.source_signatures import shortest_name
from mcheck.isa.kinds import MULTIMEM

OPEN: Final = '"?"'
_WIDEST: Final = 60


def launch_template(module: Module) -> str:
    """The text of a launch file for all kernels of ``module``, with ``"?"`` for what only the user knows."""
    entries = [module.functions[name] for name in module.entries]
    launches = [list(_launch(module, entry)) for entry in entries]
    if len(launches) == 1:
        return "\n".join(launches[0]) + "\n"
    lines = ['{"launches": [ // in the order of the host; leave out what it does not launch']
    for k, launch in enumerate(launches):
        lines += [f"  {line}" for line in launch[:-1]] + [f"  {launch[-1]}{',' if k + 1 < len(launches) else ''}"]
    return "\n".join([*lines, "]}"]) + "\n"


def _launch(module: Module, entry: Function) -> Iterator[str]:
    yield f'{{"entry": "{shortest_name(entry.name, module.entries)}",'
    yield f' "grid": {OPEN},  // CTAs, such as [4, 1, 1]'
    if "reqntid" not in entry.directives:
        most = entry.directives.get("maxntid")
        limit = f", at most {' * '.join(map(str, most))}" if most else ""
        yield f' "block": {OPEN},  // threads of a CTA{limit}'
    if "explicitcluster" in entry.directives and "reqnctapercluster" not in entry.directives:
        yield f' "cluster": {OPEN},  // CTAs of a cluster'
    if needs_shared_size(module, entry):
        yield f' "shared": {OPEN},  // bytes of dynamic shared memory'
    if not entry.parameters:
        yield ' "params": {}}'
        return
    if any(statement.kind in MULTIMEM for function in module.functions.values() for statement in function.body):
        yield ' // a multimem address points to a buffer with {"multicast": ["x0", "x1"]} under "buffers"'
    yield ' "params": {'
    types = _types(module, entry)
    for k, parameter in enumerate(entry.parameters):
        end = "," if k + 1 < len(entry.parameters) else ""
        value, meaning = _value(parameter, types[k])
        yield f'  "{_key(module, entry, k)}": {value}{end}  // {meaning}'
    yield " }}"


def _key(module: Module, entry: Function, number: int) -> str:
    name = entry.parameters[number].name
    signature = module.signatures.get(entry.name)
    if signature is not None:
        return signature.parameters[number].name
    return str(number) if name == f"{entry.name}_param_{number}" else name


def _types(module: Module, entry: Function) -> list[str]:
    """The types of the parameters in C++, where the source or the mangled name says them; else those of PTX."""
    signature, cpp = module.signatures.get(entry.name), demangle(entry.name)
    if signature is not None:
        return [parameter.type for parameter in signature.parameters]
    if cpp is not None and len(cpp.types) == len(entry.parameters):
        return list(cpp.types)
    return [f".{p.type}" if not p.shape else f"{p.size} bytes" for p in entry.parameters]


def _value(parameter: Parameter, cpp: str) -> tuple[str, str]:
    shown = cpp if len(cpp) <= _WIDEST else f"{cpp[: _WIDEST - 1]}…"
    size = parameter.size or 0
    if "CUtensorMap" in cpp and (size == MAP_BYTES or cpp.rstrip().endswith("*")):
        fields = ", ".join(
            f'"{name}": {value}'
            for name, value in (
                ("global_address", '{"buffer": null}'), ("elemtype", OPEN), ("rank", OPEN), ("global_dim", OPEN),
                ("global_stride", OPEN), ("box_dim", OPEN), ("element_stride", OPEN), ("swizzle_mode", OPEN),
            )
        )  # fmt: skip
        return f'{{"tensormap": {{{fields}}}}}', f"{shown}: as cuTensorMapEncodeTiled gets them"
    if parameter.shape:
        return '{"hex": "?"}', f'{shown}: its {size} bytes, pointers under "at" by their offsets'
    if size == POINTER and ("*" in cpp or "&" in cpp or parameter.pointer is not None):
        return '{"buffer": null}', f"{shown}: the bytes that it points to, null if they are unknown"
    return OPEN, shown
