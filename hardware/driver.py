"""The little of the CUDA driver API that is needed, by ctypes."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p

from mcheck.ir.memory import TensorMapSpec

DATA_TYPES = ("u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f64", "bf16", "f32.ftz", "tf32", "tf32.ftz")
SWIZZLES = {
    ("none", "16B"): 0, ("32B", "16B"): 1, ("64B", "16B"): 2, ("128B", "16B"): 3,
    ("128B", "32B"): 4, ("128B", "32B+8B"): 5, ("128B", "64B"): 6,
}  # fmt: skip
INTERLEAVES = ("none", "16B", "32B")
MAX_DYNAMIC_SHARED = 8


class CudaError(Exception):
    """A call of the driver failed."""

    def __init__(self, call: str, code: int, name: str, log: str = "") -> None:
        super().__init__(f"{call}: {name} ({code}) {log}".strip())
        self.code = code
        self.name = name


class Driver:
    """A context on a device, by default the first one. Calls go to the driver that was made or ``use``d last."""

    def __init__(self, number: int = 0) -> None:
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        device, self.context = c_int(), c_void_p()
        self.call("cuDeviceGet", byref(device), number)
        self.call("cuDevicePrimaryCtxRetain", byref(self.context), device)
        self.call("cuCtxSetCurrent", self.context)
        name = ctypes.create_string_buffer(100)
        self.call("cuDeviceGetName", name, 100, device)
        self.device = name.value.decode()
        version = c_int()
        self.call("cuDriverGetVersion", byref(version))
        self.version = f"{version.value // 1000}.{version.value % 1000 // 10}"

    def call(self, name: str, *arguments: object, log: object = None) -> None:
        """Calls a function of the driver; raises ``CudaError`` unless it succeeds."""
        code = getattr(self.cuda, name)(*arguments)
        if code:
            text = c_char_p()
            self.cuda.cuGetErrorName(code, byref(text))
            shown = log.value.decode(errors="replace") if isinstance(log, ctypes.Array) else ""
            raise CudaError(name, code, (text.value or b"?").decode(), shown)

    def allocate(self, size: int) -> int:
        """The address of new device memory."""
        address = c_uint64()
        self.call("cuMemAlloc_v2", byref(address), c_size_t(size))
        return address.value

    def allocate_twice(self, size: int) -> tuple[int, int]:
        """Two addresses of the same new device memory, which is never given back; ``size`` is a multiple of 2 MiB."""
        location = struct.pack("<ii", 1, 0)  # CU_MEM_LOCATION_TYPE_DEVICE 0
        wanted = struct.pack("<ii8sQQ", 1, 0, location, 0, 0)  # CU_MEM_ALLOCATION_TYPE_PINNED
        access = struct.pack("<8si", location, 3)  # CU_MEM_ACCESS_FLAGS_PROT_READWRITE
        handle = c_uint64()
        self.call("cuMemCreate", byref(handle), c_size_t(size), wanted, c_uint64(0))
        found = []
        for _ in range(2):
            address = c_uint64()
            self.call("cuMemAddressReserve", byref(address), c_size_t(size), c_size_t(0), c_uint64(0), c_uint64(0))
            self.call("cuMemMap", address, c_size_t(size), c_size_t(0), handle, c_uint64(0))
            self.call("cuMemSetAccess", address, c_size_t(size), access, c_size_t(1))
            found.append(address.value)
        return found[0], found[1]

    def free(self, address: int) -> None:
        """Gives device memory back."""
        self.call("cuMemFree_v2", c_uint64(address))

    def write(self, address: int, data: bytes) -> None:
        """Copies bytes to the device."""
        self.call("cuMemcpyHtoD_v2", c_uint64(address), data, c_size_t(len(data)))

    def read(self, address: int, size: int) -> bytes:
        """Copies bytes from the device."""
        out = ctypes.create_string_buffer(size)
        self.call("cuMemcpyDtoH_v2", out, c_uint64(address), c_size_t(size))
        return out.raw

    def use(self) -> Driver:
        """Makes this device the one that calls go to."""
        self.call("cuCtxSetCurrent", self.context)
        return self

    def reach(self, peer: Driver) -> None:
        """Lets this device access the memory of another one."""
        self.use().call("cuCtxEnablePeerAccess", peer.context, 0)

    def launch(self, ptx: str, grid: int, block: int, shared: int, arguments: Sequence[int | bytes]) -> None:
        """Assembles the module, runs its kernel ``run`` with 64-bit arguments or blocks of bytes, and waits for it."""
        module = self.start(ptx, grid, block, shared, arguments)
        self.wait()
        self.call("cuModuleUnload", module)

    def start(self, ptx: str, grid: int, block: int, shared: int, arguments: Sequence[int | bytes]) -> c_void_p:
        """Like ``launch``, without waiting for the kernel; returns the module."""
        module, function = c_void_p(), c_void_p()
        log = ctypes.create_string_buffer(4096)
        options = (c_int * 2)(5, 6)  # CU_JIT_ERROR_LOG_BUFFER, its size
        values = (c_void_p * 2)(ctypes.cast(log, c_void_p).value, 4096)
        self.call("cuModuleLoadDataEx", byref(module), ptx.encode() + b"\0", 2, options, values, log=log)
        self.call("cuModuleGetFunction", byref(function), module, b"run")
        if shared:
            self.call("cuFuncSetAttribute", function, MAX_DYNAMIC_SHARED, shared)
        held = [c_uint64(a) if isinstance(a, int) else (ctypes.c_char * len(a)).from_buffer_copy(a) for a in arguments]
        pointers = (c_void_p * len(held))(*(ctypes.cast(byref(a), c_void_p).value for a in held))
        self.call("cuLaunchKernel", function, grid, 1, 1, block, 1, 1, c_uint(shared), None, pointers, None)
        return module

    def wait(self) -> None:
        """Waits for all kernels of the device."""
        self.call("cuCtxSynchronize")

    def encode(self, spec: TensorMapSpec) -> bytes:
        """The 128 bytes of a tensor map; ``CudaError`` if the driver refuses it."""
        raw = ctypes.create_string_buffer(192)
        at = (ctypes.addressof(raw) + 63) // 64 * 64
        rank = spec.rank
        dims = (c_uint64 * 5)(*_padded(spec.global_dim, 5))
        strides = (c_uint64 * 5)(*_padded(spec.global_stride, 5))
        steps = (c_uint * 5)(*_padded(spec.element_stride, 5))
        tail = (
            INTERLEAVES.index(spec.interleave_layout),
            SWIZZLES[spec.swizzle_mode, spec.swizzle_atomicity],
            0,
            int(spec.fill_mode == "nan"),
        )
        head = (c_void_p(at), DATA_TYPES.index(spec.elemtype), rank, c_void_p(spec.global_address), dims, strides)
        if spec.pixels_per_column is None:
            box = (c_uint * 5)(*_padded(spec.box_dim, 5))
            self.call("cuTensorMapEncodeTiled", *head, box, steps, *tail)
        else:
            lower = (c_int * 3)(*_padded(spec.pixel_box_lower_corner, 3))
            upper = (c_int * 3)(*_padded(spec.pixel_box_upper_corner, 3))
            counts = (spec.channels_per_pixel, spec.pixels_per_column)
            self.call("cuTensorMapEncodeIm2col", *head, lower, upper, *counts, steps, *tail)
        return ctypes.string_at(at, 128)


def _padded(values: Sequence[int], length: int) -> list[int]:
    return [*values[:length], *([1] * (length - len(values)))]
