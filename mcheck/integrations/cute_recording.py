"""The launches of a program in CuTe DSL, recorded without a GPU: ``python -m mcheck.integrations.cute PROGRAM …``.

The program runs as it is, with a library in place of CuTe DSL's runtime (``cute_runtime.c``): what it compiles is
compiled, each launch is recorded with its module, its grid and the bytes of its parameters, and no kernel runs. Tensors
are those of the host; ``torch``, if it is there, takes the processor for its device ``cuda`` and holds tensors to be
close, and benchmarks call once.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from hashlib import sha256
from pathlib import Path
from typing import Any

from mcheck.base.errors import InputError
from mcheck.base.records import dataclass
from mcheck.integrations.arguments import Json
from mcheck.integrations.cute_maps import MAP_BYTES, read_map
from mcheck.integrations.recording.launches import Pointer, Pointers

_RUNTIME = Path(__file__).with_name("cute_runtime.c")
_UNKNOWN_BYTES = 1 << 32
"""The size of memory that nobody has named."""
_PARAMETER = re.compile(
    r"\.param\s+(?:\.align\s+\d+\s+)?\.(?P<type>\w+)[^,\[\]]*?\s(?P<name>[\w$]+)(?:\[(?P<size>\d+)\])?"
)
_CLUSTER, _COOPERATIVE, _PROGRAMMATIC = 4, 2, 6
"""Numbers of ``cudaLaunchAttributeID``."""


class _Config(ctypes.Structure):
    """``cudaLaunchConfig_t``."""

    _fields_ = (
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("shared", ctypes.c_size_t),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.c_void_p),
        ("count", ctypes.c_uint32),
    )


class _Attribute(ctypes.Structure):
    """``cudaLaunchAttribute``: its value is a union."""

    _fields_ = (("number", ctypes.c_uint32), ("padding", ctypes.c_uint32), ("value", ctypes.c_uint32 * 16))


_SINK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Config), ctypes.c_char_p, ctypes.POINTER(ctypes.c_void_p))


@dataclass(slots=True)
class Recorder:
    """What has been recorded: the ``folder`` with a module and a launch file for each launch, equal ones once.

    ``memory`` are ranges of addresses that are known to be one tensor; ``ended`` is what ended the program.
    """

    folder: Path
    dump: Path
    memory: list[tuple[int, int]] = field(default_factory=list)
    paths: dict[str, Path] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    ended: str = ""

    def launched(self, config: Any, kernel: bytes, arguments: Any) -> int:
        """Records a launch; the runtime calls it."""
        try:
            self._record(config.contents, kernel.decode(), arguments)
        except Exception as error:  # noqa: BLE001 - an exception does not pass through the host's code
            self.problems.append(f"{kernel.decode()}: {error}")
        return 0

    def _record(self, config: _Config, kernel: str, arguments: Any) -> None:
        module = self._module_of(kernel)
        pointers = Pointers()

        def pointer(address: int) -> Any:
            end = next((end for start, end in self.memory if start <= address < end), address + _UNKNOWN_BYTES)
            return pointers.add(Pointer(address, end, end, end))

        params: dict[str, Json] = {}
        for k, (kind, size) in enumerate(_parameters(module, kernel)):
            data = ctypes.string_at(arguments[k], size)
            params[str(k)] = self._parameter(data, kind, pointer)
        described: dict[str, Json] = {
            "entry": kernel,
            "grid": list(config.grid),
            "block": list(config.block),
            "shared": config.shared,
            "params": params,
            **_attributes(config),
        }
        text = json.dumps(pointers.finish(described)[0], indent=1)
        key = sha256(f"{module}{text}".encode()).hexdigest()[:8]
        if key not in self.paths:
            name = re.sub(r"^kernel_cutlass_|_object_at_.*|_tensor.*", "", kernel)[:60]
            path = self.folder / f"{name}-{key}.ptx"
            path.write_text(module, encoding="utf-8")
            path.with_suffix(".json").write_text(text + "\n", encoding="utf-8")
            self.paths[key] = path

    def _module_of(self, kernel: str) -> str:
        for path in sorted(self.dump.rglob("*.ptx"), key=lambda p: p.stat().st_mtime, reverse=True):
            text = path.read_text(encoding="utf-8").rstrip("\0\n") + "\n"
            if f".entry {kernel}(" in text:
                return text
        raise InputError("CuTe DSL has left no module with this kernel")

    def _parameter(self, data: bytes, kind: str, pointer: Any) -> Json:
        """A parameter: a map, a pointer into memory that is known, or bytes with such pointers in them."""
        if len(data) == MAP_BYTES and (found := read_map(data, pointer)) is not None:
            return {"tensormap": found}
        words = {at: int.from_bytes(data[at : at + 8], "little") for at in range(0, len(data) - 7, 8)}
        known = {at: word for at, word in words.items() if any(start <= word < end for start, end in self.memory)}
        if kind in ("u64", "b64") and 0 in known:
            return pointer(known[0])  # type: ignore[no-any-return]
        inside: dict[str, Json] = {str(at): pointer(word) for at, word in known.items()}
        return {"hex": data.hex(), **({"at": inside} if inside else {})}


def _parameters(module: str, kernel: str) -> Iterator[tuple[str, int]]:
    """The type and the bytes of each parameter of a kernel."""
    head = module.partition(f".entry {kernel}(")[2].partition(")")[0]
    for found in _PARAMETER.finditer(head):
        bits = int(re.sub(r"\D", "", found["type"]) or 8)
        yield found["type"], int(found["size"] or 1) * bits // 8


def _attributes(config: _Config) -> dict[str, Json]:
    found: dict[str, Json] = {}
    given = ctypes.cast(config.attributes, ctypes.POINTER(_Attribute))
    for attribute in given[: config.count] if config.count else ():
        if attribute.number == _CLUSTER:
            found["cluster"] = list(attribute.value[:3])
        elif attribute.number == _COOPERATIVE and attribute.value[0]:
            found["cooperative"] = True
        elif attribute.number == _PROGRAMMATIC and attribute.value[0]:
            found["programmatic"] = True
    return found


def run_program(program: str, arguments: Sequence[str], folder: Path, arch: str) -> Recorder:
    """Runs a program of Python and records its launches in a folder.

    Raises ``InputError`` if CuTe DSL is not installed, or there is no C compiler.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="mcheck-cute-") as scratch:
        recorder = Recorder(folder, Path(scratch))
        library = _built(Path(scratch))
        environment = {
            "CUTE_DSL_LIBS": str(library), "CUTE_DSL_ARCH": arch, "CUTE_DSL_KEEP": "ptx", "CUTE_DSL_LINEINFO": "1",
            "CUTE_DSL_DUMP_DIR": scratch, "CUTE_DSL_NO_CACHE": "1",
        }  # fmt: skip
        os.environ.update(environment)
        sink = _SINK(recorder.launched)
        ctypes.CDLL(str(library)).mcheck_record(sink)
        _stand_in(recorder)
        sys.argv = [program, *arguments]
        sys.path.insert(0, str(Path(program).resolve().parent))
        with _host_torch():
            try:
                runpy.run_path(program, run_name="__main__")
            except SystemExit:
                pass
            except Exception as error:  # noqa: BLE001 - what it has launched until then counts
                place = traceback.extract_tb(error.__traceback__)[-1]
                at = f"{place.filename}:{place.lineno}"
                recorder.ended = f"{program} ended with {type(error).__name__} at {at}: {error}"
    return recorder


def _built(folder: Path) -> Path:
    name = os.environ.get("CC") or "cc"
    compiler = shutil.which(name)
    if compiler is None:
        raise InputError(f"there is no C compiler '{name}': set CC")
    library = folder / "cute_runtime.so"
    command = [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(_RUNTIME)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise InputError(f"{name} failed to build the runtime: {done.stderr.strip()}")
    return library


def _stand_in(recorder: Recorder) -> None:
    """Lets CuTe DSL see one device, and the recorder the memory of each tensor that is handed over."""
    try:
        from cutlass.cute import runtime, testing  # type: ignore[import-not-found]
        from cutlass.cutlass_dsl import cuda_jit_executor as executor  # type: ignore[import-not-found]
    except ImportError as error:
        raise InputError(f"CuTe DSL is not installed ({error}): pip install nvidia-cutlass-dsl") from None
    executor.CudaDialectJitCompiledFunction.num_devices = property(lambda _: 1)
    original = runtime.from_dlpack

    def from_dlpack(tensor: Any, *args: Any, **options: Any) -> Any:
        start, size = _memory_of(tensor)
        if size:
            recorder.memory.append((start, start + size))
        return original(tensor, *args, **options)

    def benchmark(function: Any, *, workspace_generator: Any = None, kernel_arguments: Any = None, **_: Any) -> float:
        """Calls once what is to be measured."""
        given = workspace_generator() if workspace_generator is not None else kernel_arguments
        function(*getattr(given, "args", ()), **getattr(given, "kwargs", {}))
        return 1.0

    runtime.from_dlpack = from_dlpack
    testing.benchmark = benchmark


def _memory_of(tensor: Any) -> tuple[int, int]:
    """The first address and the bytes of the memory of a tensor of torch or an array of numpy."""
    if hasattr(tensor, "untyped_storage"):
        storage = tensor.untyped_storage()
        return storage.data_ptr(), storage.nbytes()
    if hasattr(tensor, "__array_interface__"):
        whole = tensor
        while getattr(whole, "base", None) is not None and hasattr(whole.base, "__array_interface__"):
            whole = whole.base
        return whole.__array_interface__["data"][0], whole.nbytes
    return 0, 0


@contextmanager
def _host_torch() -> Iterator[None]:
    """Lets torch, if it is installed, take the processor for its device ``cuda``."""
    try:
        import torch
        from torch.overrides import TorchFunctionMode
    except ImportError:
        yield
        return

    def on_host(value: Any) -> Any:
        named = isinstance(value, str | torch.device) and str(value).startswith("cuda")
        return "cpu" if named else value

    class OnHost(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if function is torch.Tensor.cuda:
                return args[0]
            given = {name: on_host(value) for name, value in (kwargs or {}).items()}
            return function(*map(on_host, args), **given)

    class Stream:
        cuda_stream = 0

        def synchronize(self) -> None:
            pass

    torch.testing.assert_close = lambda *_, **__: None  # no kernel has run
    torch.cuda.is_available = lambda: True
    torch.cuda.synchronize = lambda *_: None
    torch.cuda.current_stream = lambda *_: Stream()
    torch.cuda.get_device_capability = lambda *_: (9, 0)
    with OnHost():
        yield
