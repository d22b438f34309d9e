"""The GPU of this machine for litmus tests: one arena of memory, modules, launches with one parameter."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_int, c_size_t, c_uint, c_uint64, c_void_p
from dataclasses import replace
from typing import Any

from hardware import resources
from hardware.driver import MAX_DYNAMIC_SHARED, Driver
from hardware.litmus.settings import ROW
from mcheck.ir.memory import TensorMapSpec

ARENA = 3 << 30
TWICE = 256 << 20
"""Bytes that have two addresses each."""
NUMBER_OF_REGISTERS = 4  # CU_FUNC_ATTRIBUTE_NUM_REGS


class Device:
    """A context, and memory that is given out from the start again for every launch."""

    def __init__(self, number: int = 0) -> None:
        self.driver = Driver(number)
        self.arena = self.driver.allocate(ARENA)
        self.used = self.used_twice = 0
        self.twice: tuple[int, ...] = ()
        self.textures: dict[tuple[int, int], int] = {}
        self.arrays: dict[int, int] = {}
        self.driver.call("cuMemsetD8_v2", c_uint64(self.arena), ctypes.c_ubyte(0), c_size_t(1 << 26))

    def reset(self, kept: int = 0) -> None:
        """Gives back all memory after the first ``kept`` bytes, and the surfaces."""
        for handle, array in self.arrays.items():
            resources.destroy_surface(self.driver, array, handle)
        self.arrays.clear()
        self.used, self.used_twice = kept, 0

    def take(self, size: int) -> int:
        """Memory aligned to 4 KiB."""
        at = self.used
        self.used += (size + 4095) // 4096 * 4096
        if self.used > ARENA:
            raise MemoryError("the arena is full")
        return self.arena + at

    def take_twice(self, size: int) -> int:
        """Memory that has another address as well, aligned to 4 KiB; reserved and mapped when it is first asked for."""
        if not self.twice:
            self.twice = self.driver.allocate_twice(TWICE)
        at = self.used_twice
        self.used_twice += (size + 4095) // 4096 * 4096
        if self.used_twice > TWICE:
            raise MemoryError("the arena with two addresses is full")
        return self.twice[0] + at

    def other_address(self, address: int) -> int:
        """The other address of memory that ``take_twice`` gave."""
        return address - self.twice[0] + self.twice[1]

    def texture(self, address: int, size: int) -> int:
        """The handle of a texture over words of memory; memory is given out again, so textures are kept."""
        if (address, size) not in self.textures:
            self.textures[address, size] = resources.texture(self.driver, address, size)
        return self.textures[address, size]

    def surface(self, size: int) -> int:
        """The handle of a surface for the words of so many bytes; ``reset`` gives it back."""
        array, handle = resources.surface(self.driver, ROW, rows(size))
        self.arrays[handle] = array
        return handle

    def fill_surface(self, handle: int, address: int, size: int) -> None:
        """Copies memory to a surface, in the order of the launches."""
        resources.fill(self.driver, self.arrays[handle], address, min(size, 4 * ROW), 4 * ROW, rows(size))

    def zero(self, address: int, size: int) -> None:
        """Clears memory whose size is a multiple of four, in the order of the launches."""
        self.driver.call("cuMemsetD32Async", c_uint64(address), c_uint(0), c_size_t(size // 4), None)

    def load(self, image: bytes) -> c_void_p:
        """A module, from what the assembler made of it or from PTX."""
        module = c_void_p()
        self.driver.call("cuModuleLoadData", byref(module), image + b"\0")
        return module

    def unload(self, module: c_void_p) -> None:
        """Forgets a module."""
        self.driver.call("cuModuleUnload", module)

    def entry(self, module: c_void_p, name: str) -> c_void_p:
        """A kernel of a module."""
        function = c_void_p()
        self.driver.call("cuModuleGetFunction", byref(function), module, name.encode())
        return function

    def allow_shared(self, function: c_void_p, size: int) -> None:
        """Lets a kernel have so much dynamic shared memory."""
        self.driver.call("cuFuncSetAttribute", function, MAX_DYNAMIC_SHARED, size)

    def registers(self, function: c_void_p) -> int:
        """Registers per thread."""
        count = c_int()
        self.driver.call("cuFuncGetAttribute", byref(count), NUMBER_OF_REGISTERS, function)
        return count.value

    def launch(self, function: c_void_p, grid: int, block: int, shared: int, *parameters: bytes) -> None:
        """Starts a kernel; its parameters are given as bytes."""
        held = [ctypes.create_string_buffer(p, len(p)) for p in parameters]
        pointers = (c_void_p * len(held))(*(ctypes.addressof(h) for h in held))
        self.driver.call("cuLaunchKernel", function, grid, 1, 1, block, 1, 1, c_uint(shared), None, pointers, None)

    def wait(self) -> None:
        """Waits for all launches."""
        self.driver.call("cuCtxSynchronize")

    def maps(self, spec: dict[str, Any], first: int, stride: int, count: int) -> bytes:
        """Tensor maps of ``count`` objects, ``stride`` bytes apart.

        The driver encodes the first two; where they differ in nothing but the address in their first eight bytes, the
        others are made from it.
        """
        values = {k: tuple(v) if isinstance(v, list) else v for k, v in spec.items()}
        base = TensorMapSpec(**values)

        def encoded(n: int) -> bytes:
            return self.driver.encode(replace(base, global_address=first + n * stride))

        head = [encoded(n) for n in range(min(count, 2))]
        plain = all(
            data[8:] == head[0][8:] and int.from_bytes(data[:8], "little") == first + n * stride
            for n, data in enumerate(head)
        )
        if not plain:
            return b"".join(encoded(n) for n in range(count))
        return b"".join((first + n * stride).to_bytes(8, "little") + head[0][8:] for n in range(count))


def rows(size: int) -> int:
    """Rows of a surface that hold so many bytes."""
    return -(-size // (4 * ROW))
