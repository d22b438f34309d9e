"""A kernel in TileLang as a module with its launch, compiled without a GPU.

    kernel = compile_kernel(product(512, 512, 512), "sm_90a")
    answer = mcheck.ptx.check(kernel.ptx, kernel.launch)

Findings are at lines of the Python source in releases with ``tl.emit_line_directives``: those of the spans that
TileLang keeps to the end, or of the calls and loops that ``tilelang_lines`` recognises; else at lines of the generated
CUDA C++.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from math import prod
from pathlib import Path
from typing import Any

from mcheck.base.errors import InputError
from mcheck.base.records import dataclass, replace
from mcheck.integrations.arguments import Json
from mcheck.integrations.recording.launches import Pointer, Pointers
from mcheck.integrations.tilelang_lines import with_python_lines

# CUtensorMapDataType and CUtensorMapSwizzle of the driver's API, by number.
_ELEMENT_TYPES = ("u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f64", "bf16", "f32.ftz", "tf32", "tf32.ftz")
_SWIZZLES = ("none", "32B", "64B", "128B")
_INTERLEAVES = ("none", "16B", "32B")
_TILED = "__tvm_tensormap_create_tiled"
_BUFFER_DISTANCE = 1 << 44
_LINE = re.compile(r"\s*#line\s")


@dataclass(frozen=True, slots=True)
class Kernel:
    """A compiled kernel: its module, a launch for ``mcheck.ptx.check``, and the CUDA C++ that TileLang generated.

    ``path`` is that of the module if it was written to a folder, with its launch and the CUDA C++ beside it.
    """

    ptx: str
    launch: dict[str, Json]
    source: str
    path: str | None = None


def compile_kernel(
    program: Any,
    arch: str,
    sizes: Mapping[str, int] | None = None,
    *,
    entry: str | None = None,
    arguments: Mapping[str, Any] | None = None,
    folder: str | os.PathLike[str] | None = None,
) -> Kernel:
    """Compiles a ``T.prim_func``, or a function of ``tilelang.jit`` with the ``arguments`` of its ``compile``.

    ``sizes`` are the dynamic sizes by name. ``entry`` chooses one of several kernels. In the ``folder``, if one is
    given, the module, its launch and the generated source are written, so that findings quote the source and
    ``mcheck check`` can be asked again. Raises ``InputError`` for what is missing; needs TileLang and its nvcc.
    """
    import tilelang
    from tilelang import tvm
    from tilelang.engine import lower

    lines = getattr(tilelang.PassConfigKey, "TL_EMIT_LINE_DIRECTIVES", None)
    configs = {
        str(getattr(key, "value", key)): value for key, value in (_option(program, "pass_configs") or {}).items()
    }
    configs |= {} if lines is None else {lines.value: True}
    target = tvm.target.Target({"kind": "cuda", "arch": arch})
    with tvm.transform.PassContext(opt_level=3, config=configs), target:
        function = _function(program, arguments)
        artifact = lower(function, target=target, enable_device_compile=False)
    home = Path(tilelang.__file__).parent
    source = with_python_lines(artifact.kernel_source, str(home))
    name = _file_name(_choose(artifact.device_mod, entry), source, arch)
    generated = f"{name}.cu" if folder is None else str(Path(folder).resolve() / f"{name}.cu")
    source = confine_lines(source, generated, str(home))
    flags = _option(program, "compile_flags") or []
    ptx = _compile(source, arch, flags.split() if isinstance(flags, str) else flags, home)
    return _written(_described(artifact, function, entry, sizes or {}, ptx, source), folder, name)


def _file_name(function: Any, source: str, arch: str) -> str:
    """The name of the files of a kernel: its own, and what keeps it apart from others of that name."""
    return f"{dict(function.attrs)['global_symbol']}-{sha256(f'{arch} {source}'.encode()).hexdigest()[:8]}"


def _option(program: Any, name: str) -> Any:
    """An option of a function of ``tilelang.jit``; ``None`` for a ``T.prim_func``."""
    return getattr(program, name, None) if hasattr(program, "get_tir") else None


def _function(program: Any, arguments: Mapping[str, Any] | None) -> Any:
    """The ``T.prim_func`` that a program is or makes."""
    if hasattr(program, "get_tir"):
        if arguments is None:
            raise InputError("a function of tilelang.jit is compiled with arguments=, those of its compile(…)")
        return program.get_tir(**arguments)
    if not hasattr(program, "buffer_map"):
        raise InputError(
            f"{type(program).__name__} is not a TileLang kernel", expected="a T.prim_func or a function of tilelang.jit"
        )
    if arguments is not None:
        raise InputError("a T.prim_func takes no arguments: its dynamic sizes are given by name as sizes")
    return program


def _compile(source: str, arch: str, flags: Sequence[str], home: Path) -> str:
    """The module that TileLang's nvcc makes of the generated source, with the names of its parameters."""
    from tilelang.contrib import nvcc

    from mcheck.frontend.cuda.compiled import name_parameters
    from mcheck.frontend.cuda.nvcc import CompileError

    include = [f"-I{home / 'src'}", f"-I{home / '3rdparty' / 'cutlass' / 'include'}"]
    options = ["-lineinfo", "-std=c++17", *include, *flags]
    try:
        ptx = bytes(nvcc.compile_cuda(source, "ptx", [f"-arch={arch}"], options=options)).decode()
    except RuntimeError as error:  # the whole source, then what nvcc wrote
        refused = CompileError("the CUDA C++ of TileLang", str(error).rpartition("Compilation error:\n")[2])
        refused.add_note(f"{refused.said}\nhint: {refused.hint}")
        raise refused from None
    return name_parameters(ptx, [source])


def _written(kernel: Kernel, folder: str | os.PathLike[str] | None, name: str) -> Kernel:
    """The kernel, with its files if they have a folder."""
    if folder is None:
        return kernel
    made = Path(folder)
    made.mkdir(parents=True, exist_ok=True)
    path = made / f"{name}.ptx"
    path.write_text(kernel.ptx, encoding="utf-8")
    path.with_suffix(".json").write_text(json.dumps(kernel.launch, indent=1) + "\n", encoding="utf-8")
    path.with_suffix(".cu").write_text(kernel.source, encoding="utf-8")
    return replace(kernel, path=str(path))


def _described(
    artifact: Any, program: Any, entry: str | None, sizes: Mapping[str, int], ptx: str, source: str
) -> Kernel:  # fmt: skip
    """The kernel with its launch, from what TileLang keeps of it."""
    from tilelang import tvm

    numbers = dict(sizes)

    def number(value: Any) -> int:
        """A number, or an expression of the dynamic sizes."""
        if isinstance(value, int) or hasattr(value, "value"):
            return int(getattr(value, "value", value))
        names = {variable.name: variable for variable in tvm.tirx.analysis.undefined_vars(value)}
        missing = sorted(names.keys() - numbers.keys())
        if missing:
            raise InputError(f"the kernel depends on '{missing[0]}': give it among the sizes")
        known = {variable: numbers[name] for name, variable in names.items()}
        return int(tvm.arith.Analyzer().simplify(tvm.tirx.stmt_functor.substitute(value, known)).value)

    function = _choose(artifact.device_mod, entry)
    maps: dict[str, Sequence[Any]] = {}
    for host in artifact.host_mod.functions.values():
        described = dict(host.attrs).get("tma_descriptor_args") or {}
        maps |= {variable.name: list(arguments) for variable, arguments in described.items()}
    buffers = {
        buffer.data.name: prod(map(number, buffer.shape)) * _element_bytes(buffer.dtype)
        for buffer in program.buffer_map.values()
    }
    return Kernel(ptx, _launch(function, buffers, maps, number, numbers), source)


def confine_lines(source: str, name: str, library: str | None = None) -> str:
    """The source, in which a ``#line`` is for the next line alone; other lines are those of the file ``name``.

    What has a line in the folder ``library`` counts as one of ``name``: a line of a macro of TileLang's is the same
    for every call of it.
    """
    found = [f'#line 2 "{name}"']
    given = ""  # the directive that holds for the next line
    elsewhere = False
    for line in source.splitlines():
        if _LINE.match(line):
            if library is not None and f'"{library}' in line:
                given = ""
                continue
            given, elsewhere = line, True
        elif elsewhere and not given:
            elsewhere = False
            found.append(f'#line {len(found) + 2} "{name}"')
        found.append(line)
        if given and line.lstrip().startswith("#pragma"):
            found.append(given)
        elif not _LINE.match(line):
            given = ""
    return "\n".join(found) + "\n"


def _choose(module: Any, entry: str | None) -> Any:
    functions = {str(name.name_hint): function for name, function in module.functions.items()}
    if entry is None and len(functions) == 1:
        return next(iter(functions.values()))
    if entry not in functions:
        raise InputError(f"the program has the kernels {', '.join(sorted(functions))}: name one as the entry")
    return functions[entry]


def _launch(
    function: Any, buffers: Mapping[str, int], maps: Mapping[str, Sequence[Any]], number: Any, sizes: Mapping[str, int]
) -> dict[str, Json]:
    """The launch of a function of the device, from its attributes."""
    attributes = dict(function.attrs)
    extents = {name: number(extent) for name, extent in dict(attributes["thread_extent"]).items()}
    pointers = Pointers()
    places = {name: _BUFFER_DISTANCE * k for k, name in enumerate(buffers, 1)}

    def pointer(name: str) -> dict[str, Any]:
        start, end = places[name], places[name] + buffers[name]
        return pointers.add(Pointer(start, end, name, end))

    params: dict[str, Json] = {}
    for k, parameter in enumerate(function.params):
        name = parameter.name
        if name in maps:
            params[str(k)] = {"tensormap": tensor_map(maps[name], pointer, number)}
        elif name in buffers:
            params[str(k)] = pointer(name)
        elif name in sizes:
            params[str(k)] = sizes[name]
        else:
            raise InputError(f"the kernel has a parameter '{name}': give it among the sizes")
    described: dict[str, Json] = {
        "entry": str(attributes["global_symbol"]),
        "grid": [extents.get(f"blockIdx.{axis}", 1) for axis in "xyz"],
        "block": [extents.get(f"threadIdx.{axis}", 1) for axis in "xyz"],
        "shared": number(attributes.get("dyn_shared_memory_buf", 0)),
        "params": params,
    }
    if attributes.get("use_cooperative_groups"):
        described["cooperative"] = True
    return pointers.finish(described)[0]


def tensor_map(arguments: Sequence[Any], pointer: Any, number: Any) -> dict[str, Json]:
    """The fields of a map, from the arguments of the call that encodes it (``cuTensorMapEncodeTiled``)."""
    kind, _, element, rank, base, *rest = arguments
    if str(getattr(kind, "value", kind)) != _TILED:
        raise InputError(f"the tensor map of '{base.name}' is not tiled: write the launch by hand")
    rank = number(rank)
    numbers = [number(value) for value in rest]
    dims, strides, box, steps = (numbers[k * rank : (k + 1) * rank] for k in range(4))
    interleave, swizzle, _, fill = numbers[4 * rank :]
    return {
        "global_address": pointer(base.name),
        "elemtype": _ELEMENT_TYPES[number(element)],
        "rank": rank,
        "global_dim": _list(dims),
        "global_stride": _list(strides[1:]),
        "box_dim": _list(box),
        "element_stride": _list(steps),
        "interleave_layout": _INTERLEAVES[interleave],
        "swizzle_mode": _SWIZZLES[swizzle],
        "fill_mode": "nan" if fill else "zero",
    }


def _list(numbers: Iterable[int]) -> list[Json]:
    return [*numbers]


def _element_bytes(kind: Any) -> int:
    """The bytes of an element of a type such as ``float16`` or ``float8_e4m3``."""
    bits = re.search(r"(?<!\d)(?:bool|\d+)", str(kind))
    return 1 if bits is None or bits[0] == "bool" else max(int(bits[0]) // 8, 1)
