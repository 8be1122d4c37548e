"""Which tensors of the device hold values that are known, and operations on such tensors, really worked out.

Known is what the host put there (batches, masks, constants) and what follows from it. The kernels that would work it out
do not run, so a few operations are replaced on the device: they allocate as before, by way of their own out= variants,
and where all that they read is known, their result is computed on the host and put on the device. So a padding mask says
whether there is padding, and positions whether sequences are packed.

Large tensors are known only if all of their elements are the same ("uniform"). A float that a kernel would have written
is taken for small and positive where it is compared: such comparisons are answers, and counted as such (answers.py).
"""
import torch

from . import library

LARGEST = 1 << 20  # bytes of a tensor that is worked out
_TYPICAL = 0.01  # what a float that nobody computed is taken for when it is compared

aten = torch.ops.aten


class Uniform:
    """All elements are this one."""

    def __init__(self, value):
        self.value = value


class Values:
    def __init__(self, suppose):
        """`suppose(operation, value)`: what a comparison of values that nobody computed comes to."""
        self._suppose = suppose
        self._uniform = {}  # address of a block -> Uniform
        self._library = None

    # ---- what is known -----------------------------------------------------------------------------------------
    def block_is_new(self, address):
        self._uniform.pop(address, None)
        library.forget_block(address)

    def of(self, tensor):
        """A host tensor with the values, Uniform, or None where a kernel would have written them."""
        if not tensor.is_cuda:
            return tensor if tensor.device.type == "cpu" else None
        if tensor.numel() == 0:
            return torch.empty(tensor.shape, dtype=tensor.dtype)
        if self._uniform:
            uniform = self._uniform.get(tensor.untyped_storage().data_ptr())
            if uniform is not None:
                return uniform
        size = _span(tensor) * tensor.element_size()
        if size > LARGEST or not library.written_by_host(tensor.data_ptr(), size):
            return None
        host = torch.empty(_span(tensor), dtype=tensor.dtype)
        library.read_into(host.data_ptr(), tensor.data_ptr(), size)
        return host.as_strided(tensor.shape, tensor.stride())

    def put(self, tensor, value):
        """The tensor's values are these from now on; None: nobody knows them."""
        size = _span(tensor) * tensor.element_size() if tensor.numel() else 0
        address = tensor.untyped_storage().data_ptr()
        whole = tensor.storage_offset() == 0 and tensor.numel() == _span(tensor)
        if whole or not isinstance(value, Uniform):
            self._uniform.pop(address, None)
        if not size:
            return
        if isinstance(value, Uniform) and size <= LARGEST:
            value = torch.full(tensor.shape, value.value, dtype=tensor.dtype)
        if isinstance(value, Uniform):
            if whole:
                self._uniform[address] = value
        elif value is None:
            library.forget(tensor.data_ptr(), min(size, LARGEST))
        elif tensor.numel() == _span(tensor):
            host = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype)
            host.copy_(value)
            library.write_from(tensor.data_ptr(), host.data_ptr(), size)

    # ---- operations --------------------------------------------------------------------------------------------
    def install(self, replacements):
        """`replacements`: further operations of the device, by name."""
        import warnings

        _on_allocation(self.block_is_new)
        self._library = torch.library.Library("aten", "IMPL")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that a kernel is replaced is the point
            for name, function in {**self._operations(), **replacements}.items():
                self._library.impl(name, function, "CUDA")

    def _operations(self):
        table = {}
        for name in ("eq", "ne", "lt", "le", "gt", "ge"):
            for overload in ("Scalar", "Tensor"):
                table[f"{name}.{overload}"] = self._comparison(getattr(aten, name), overload)
        for name in ("add", "sub", "mul"):
            table[f"{name}.Tensor"] = self._elementwise(getattr(aten, name), "Tensor", "out")
            table[f"{name}_.Tensor"] = self._in_place(getattr(aten, name), "Tensor", "out")
        for name in ("logical_and", "logical_or", "logical_xor", "logical_not", "bitwise_not"):
            table[name] = self._elementwise(getattr(aten, name), "default", "out")
        for name in ("bitwise_and", "bitwise_or"):
            table[f"{name}.Tensor"] = self._elementwise(getattr(aten, name), "Tensor", "Tensor_out")
        table["abs"] = self._elementwise(aten.abs, "default", "out")
        for name in ("any", "all"):
            table[name] = self._reduction(getattr(aten, name), "default", "all_out")
            table[f"{name}.dim"] = self._reduction(getattr(aten, name), "dim", "out")
        for name in ("max", "min"):
            table[name] = self._reduction(getattr(aten, name), "default", "unary_out")
        table["sum.dim_IntList"] = self._reduction(aten.sum, "dim_IntList", "IntList_out")
        table["cumsum"] = self._reduction(aten.cumsum, "default", "out")
        table["isnan"] = lambda x: aten.ne.Tensor(x, x)
        table["isinf"] = lambda x: aten.eq.Scalar(aten.abs.default(x), float("inf")) if x.is_floating_point() \
            else aten.zeros_like.default(x, dtype=torch.bool)
        table["isfinite"] = self._isfinite
        table["arange.start_out"] = self._arange
        table["fill_.Scalar"] = self._fill
        table["zero_"] = lambda x: self._fill(x, 0)
        return table

    @staticmethod
    def _isfinite(x):
        if not x.is_floating_point():
            return aten.ones_like.default(x, dtype=torch.bool)
        return aten.mul.Tensor(aten.eq.Tensor(x, x), aten.ne.Scalar(aten.abs.default(x), float("inf")))

    def _work_out(self, operation, arguments, options):
        """The operation on known values: a host tensor, Uniform, or None."""
        known, uniform = [], True
        for argument in arguments:
            if isinstance(argument, torch.Tensor):
                argument = self.of(argument)
                if argument is None:
                    return None
                if isinstance(argument, Uniform):
                    argument = torch.tensor(argument.value)
                elif argument.dim():
                    uniform = False
            known.append(argument)
        some_uniform = any(isinstance(a, torch.Tensor) and a.is_cuda and isinstance(self.of(a), Uniform)
                           for a in arguments)
        if some_uniform and not uniform:
            return None
        result = operation(*known, **options)
        return Uniform(result.item()) if some_uniform else result

    def _run(self, packet, overload, out_overload, arguments, options, dtype):
        out = torch.empty(0, dtype=dtype, device=_device(arguments))
        return getattr(packet, out_overload)(*arguments, **options, out=out)

    def _elementwise(self, packet, overload, out_overload):
        operation = getattr(packet, overload)
        logical = packet.__name__.startswith("logical")

        def run(*arguments, **options):
            tensors = [a for a in arguments if isinstance(a, torch.Tensor)]
            if logical:
                dtype = torch.bool
            elif len(arguments) > 1:
                dtype = torch.result_type(arguments[0], arguments[1])
            else:
                dtype = tensors[0].dtype
            out = self._run(packet, overload, out_overload, arguments, options, dtype)
            if not out.is_floating_point() and not out.is_complex():
                self._settle(out, operation, arguments, options)
            return out

        return run

    def _in_place(self, packet, overload, out_overload):
        operation = getattr(packet, overload)

        def run(tensor, other, **options):
            small = tensor.numel() * tensor.element_size() <= LARGEST
            value = self._work_out(operation, (tensor, other), options) if small else None
            getattr(packet, out_overload)(tensor, other, **options, out=tensor)
            if small:
                self.put(tensor, value)
            return tensor

        return run

    def _comparison(self, packet, overload):
        operation = getattr(packet, overload)

        def run(left, right):
            out = self._run(packet, overload, f"{overload}_out", (left, right), {}, torch.bool)
            if out.numel():
                value = self._work_out(operation, (left, right), {})
                self.put(out, self._supposed(operation, packet.__name__, left, right) if value is None else value)
            return out

        return run

    def _supposed(self, operation, name, left, right):
        """A comparison of what nobody computed: with itself, or with a number that a healthy value is far from."""
        typical = torch.tensor(_TYPICAL if left.is_floating_point() else 1)
        if isinstance(right, torch.Tensor):
            if left.data_ptr() == right.data_ptr() and left.shape == right.shape:
                return Uniform(operation(typical, typical).item())
            if right.dim() or right.is_cuda:
                return None
            right = right.item()
        if left.dtype is torch.bool:
            return None
        value = bool(getattr(aten, name).Scalar(typical, right))
        return Uniform(bool(self._suppose(name, value)))

    def _reduction(self, packet, overload, out_overload):
        operation = getattr(packet, overload)
        name = packet.__name__

        def run(tensor, *arguments, **options):
            if name in ("any", "all"):
                dtype = torch.uint8 if tensor.dtype is torch.uint8 else torch.bool
            elif name in ("sum", "cumsum"):
                integral = not tensor.is_floating_point() and not tensor.is_complex()
                dtype = options.get("dtype") or (torch.int64 if integral else tensor.dtype)
            else:
                dtype = tensor.dtype
            out = self._run(packet, overload, out_overload, (tensor, *arguments), options, dtype)
            value = self.of(tensor)
            if isinstance(value, Uniform):
                value = _reduced(name, value, tensor.numel() // max(out.numel(), 1))
            elif value is not None and (not tensor.is_floating_point() or name in ("any", "all", "max", "min")):
                value = operation(value, *arguments, **options)
            else:
                return out
            if value is not None:
                self.put(out, value)
            return out

        return run

    def _settle(self, out, operation, arguments, options):
        value = self._work_out(operation, arguments, options) if out.numel() else None
        if value is not None:
            self.put(out, value)

    def _arange(self, start, end, step=1, *, out):
        host = torch.arange(start, end, step, dtype=out.dtype)
        out.resize_(host.shape)
        if host.numel() * host.element_size() <= LARGEST:
            self.put(out, host)
        return out

    def _fill(self, tensor, value):
        small = tensor.numel() * tensor.element_size() <= LARGEST
        if small or not tensor.is_floating_point():
            self.put(tensor, Uniform(value))
        return tensor

    def copied(self, source, result):
        """A cast, or a copy on the device."""
        value = self.of(source)
        if isinstance(value, Uniform):
            self.put(result, Uniform(torch.tensor(value.value).to(result.dtype).item()))
        elif value is not None and source.dtype is not result.dtype:
            self.put(result, value)


def _on_allocation(function):
    """Calls the function with the address of every block that the allocator hands out."""
    try:
        from torch.cuda import _gpu_trace
    except ImportError:  # torch 2.1 and 2.2
        from torch.utils import _cuda_trace

        _cuda_trace.register_callback_for_cuda_memory_allocation(function)
        torch._C._activate_cuda_trace()
        return
    _gpu_trace.register_callback_for_memory_allocation(function)
    torch._C._activate_gpu_trace()


def _reduced(name, uniform, count):
    if name in ("any", "all", "max", "min"):
        return Uniform(bool(uniform.value)) if name in ("any", "all") else uniform
    return Uniform(uniform.value * count) if name == "sum" else None


def _device(arguments):
    return next(a.device for a in arguments if isinstance(a, torch.Tensor) and a.is_cuda)


def _span(tensor):
    """Elements from the first to the last that the tensor touches."""
    return 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride())) if tensor.numel() else 0
