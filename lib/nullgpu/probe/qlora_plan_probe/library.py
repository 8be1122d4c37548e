"""The null GPU's control functions, of the library that is preloaded into this process (lib/nullgpu/nullgpu.h)."""
import ctypes

_process = ctypes.CDLL(None)


def _function(name, result, *arguments):
    try:
        function = getattr(_process, name)
    except AttributeError:
        return None
    function.restype = result
    function.argtypes = arguments
    return function


_peak = _function("nullgpu_device_peak", ctypes.c_size_t, ctypes.c_int)
_written = _function("nullgpu_written_by_host", ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t)
_forget = _function("nullgpu_forget", None, ctypes.c_void_p, ctypes.c_size_t)
_get = _function("nullgpu_get", None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
_put = _function("nullgpu_put", None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
_unimplemented = _function("nullgpu_unimplemented", ctypes.c_size_t)
_unimplemented_name = _function("nullgpu_unimplemented_name", ctypes.c_char_p, ctypes.c_size_t)
_unimplemented_calls = _function("nullgpu_unimplemented_calls", ctypes.c_ulonglong, ctypes.c_size_t)
_assumptions = _function("nullgpu_assumptions", ctypes.c_size_t)
_assumption = _function("nullgpu_assumption", ctypes.c_char_p, ctypes.c_size_t)


def present():
    return _peak is not None


def peak(device):
    """Most bytes that were ever taken of the device."""
    return _peak(device)


def written_by_host(address, size):
    """Whether all of these bytes of the device were put there by the host, or by copies of such bytes."""
    return _written(address, size) == size


def forget(address, size):
    _forget(address, size)


def read_into(host, address, size):
    """What lies on the device, into host memory at an address."""
    _get(host, address, size)


def write_from(address, host, size):
    """Host memory to the device; no stream takes part in it."""
    _put(address, host, size)


def unimplemented():
    """{entry point: calls} of what the library has no answer to."""
    return {_unimplemented_name(i).decode(): _unimplemented_calls(i) for i in range(_unimplemented())}


def assumptions():
    return [_assumption(i).decode() for i in range(_assumptions())]
