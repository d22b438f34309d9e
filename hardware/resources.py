"""Texture and surface objects, by the driver API; the structures are those of ``cuda.h``.

A texture object may lie over linear memory, a surface object over a CUDA array only (``cuTexObjectCreate``,
``cuSurfObjectCreate``).
"""

from __future__ import annotations

from ctypes import Structure, Union, byref, c_float, c_int, c_size_t, c_uint, c_uint64, c_void_p

from hardware.driver import Driver

ARRAY, LINEAR = 0, 2  # CU_RESOURCE_TYPE_ARRAY, CU_RESOURCE_TYPE_LINEAR
DEVICE_MEMORY, ARRAY_MEMORY = 2, 3  # CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_ARRAY
WORDS = 3  # CU_AD_FORMAT_UNSIGNED_INT32
CLAMP = 1  # CU_TR_ADDRESS_MODE_CLAMP
AS_INTEGER = 1  # CU_TRSF_READ_AS_INTEGER
LOAD_AND_STORE = 2  # CUDA_ARRAY3D_SURFACE_LDST


class Linear(Structure):
    """The linear memory of a resource."""

    _fields_ = (("devPtr", c_uint64), ("format", c_int), ("numChannels", c_uint), ("sizeInBytes", c_size_t))


class Where(Union):
    """What a resource is: an array, or linear memory."""

    _fields_ = (("hArray", c_void_p), ("linear", Linear), ("reserved", c_int * 32))


class ResourceDescription(Structure):
    """``CUDA_RESOURCE_DESC``."""

    _fields_ = (("resType", c_int), ("res", Where), ("flags", c_uint))


class TextureDescription(Structure):
    """``CUDA_TEXTURE_DESC``."""

    _fields_ = (
        ("addressMode", c_int * 3),
        ("filterMode", c_int),
        ("flags", c_uint),
        ("maxAnisotropy", c_uint),
        ("mipmapFilterMode", c_int),
        ("mipmapLevelBias", c_float),
        ("minMipmapLevelClamp", c_float),
        ("maxMipmapLevelClamp", c_float),
        ("borderColor", c_float * 4),
        ("reserved", c_int * 12),
    )


class ArrayDescription(Structure):
    """``CUDA_ARRAY3D_DESCRIPTOR``; no depth makes it an array of two dimensions."""

    _fields_ = (
        ("Width", c_size_t),
        ("Height", c_size_t),
        ("Depth", c_size_t),
        ("Format", c_int),
        ("NumChannels", c_uint),
        ("Flags", c_uint),
    )


class Copy(Structure):
    """``CUDA_MEMCPY2D``."""

    _fields_ = (
        ("srcXInBytes", c_size_t),
        ("srcY", c_size_t),
        ("srcMemoryType", c_int),
        ("srcHost", c_void_p),
        ("srcDevice", c_uint64),
        ("srcArray", c_void_p),
        ("srcPitch", c_size_t),
        ("dstXInBytes", c_size_t),
        ("dstY", c_size_t),
        ("dstMemoryType", c_int),
        ("dstHost", c_void_p),
        ("dstDevice", c_uint64),
        ("dstArray", c_void_p),
        ("dstPitch", c_size_t),
        ("WidthInBytes", c_size_t),
        ("Height", c_size_t),
    )


def texture(driver: Driver, address: int, size: int) -> int:
    """The handle of a texture over the words of linear memory."""
    linear = Linear(devPtr=address, format=WORDS, numChannels=1, sizeInBytes=size)
    resource = ResourceDescription(resType=LINEAR, res=Where(linear=linear))
    how = TextureDescription(addressMode=(c_int * 3)(CLAMP, CLAMP, CLAMP), flags=AS_INTEGER)
    handle = c_uint64()
    driver.call("cuTexObjectCreate", byref(handle), byref(resource), byref(how), None)
    return handle.value


def surface(driver: Driver, width: int, height: int) -> tuple[int, int]:
    """A new array of words, and the handle of a surface over it."""
    shape = ArrayDescription(Width=width, Height=height, Format=WORDS, NumChannels=1, Flags=LOAD_AND_STORE)
    array, handle = c_void_p(), c_uint64()
    driver.call("cuArray3DCreate_v2", byref(array), byref(shape))
    resource = ResourceDescription(resType=ARRAY, res=Where(hArray=array.value))
    driver.call("cuSurfObjectCreate", byref(handle), byref(resource))
    return array.value or 0, handle.value


def fill(driver: Driver, array: int, address: int, width: int, pitch: int, height: int) -> None:
    """Copies ``height`` rows of ``width`` bytes, ``pitch`` apart, from device memory to an array."""
    what = Copy(
        srcMemoryType=DEVICE_MEMORY,
        srcDevice=address,
        srcPitch=pitch,
        dstMemoryType=ARRAY_MEMORY,
        dstArray=array,
        WidthInBytes=width,
        Height=height,
    )
    driver.call("cuMemcpy2DAsync_v2", byref(what), None)


def destroy_surface(driver: Driver, array: int, handle: int) -> None:
    """Gives a surface and its array back."""
    driver.call("cuSurfObjectDestroy", c_uint64(handle))
    driver.call("cuArrayDestroy", c_void_p(array))
