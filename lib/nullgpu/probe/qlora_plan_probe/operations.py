"""Operations of the device on values that are known, really worked out.

The kernels do not run, so operations are replaced on the device: they allocate as before, by way of their own out=
variants, and where all that they read is known, their result is computed on the host and put on the device. So a padding
mask says whether there is padding, and positions whether sequences are packed. What they write over is forgotten where
it is not known.

Only whole numbers and truths are worked out. A float that a kernel would have written is taken for small and positive
where it is compared: such comparisons are answers, and counted as such (answers.py).
"""
import torch

from . import made
from .operation_tables import ABSORBING, BY_ELEMENT, BY_TENSOR, DRAWN, FACTORIZATIONS, IN_PLACE, Variant, aten, rows
from .values import LARGEST, Uniform, is_of_objects, is_small

_TYPICAL = 0.01  # what a float that nobody computed is taken for when it is compared


class Operations:
    def __init__(self, values, suppose):
        """`suppose(operation, value, number)`: what a comparison of values that nobody computed with a number comes to,
        `value` by the rule."""
        self._values = values
        self._suppose = suppose
        self._library = None

    def install(self, replacements):
        """`replacements`: further operations of the device, by name."""
        import warnings

        self._library = torch.library.Library("aten", "IMPL")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that a kernel is replaced is the point
            for name, function in {**self._table(), **replacements}.items():
                self._library.impl(name, function, "CUDA")

    def _table(self):
        table = {}
        for name, packet, overload, out, _types in rows(BY_ELEMENT):
            table[name] = self._elementwise(packet, overload, out)
        for name, packet, overload, out, types in rows(BY_TENSOR):
            table[name] = self._tensorwise(packet, overload, out, types)
        for name, packet, overload, out, _types in rows(IN_PLACE):
            table[name] = self._in_place(packet, overload, out)
        for name, packet, _overload, out, _types in rows(FACTORIZATIONS):
            table[name] = self._factorization(packet, out)
        for name in ("eq", "ne", "lt", "le", "gt", "ge"):
            for overload in ("Scalar", "Tensor"):
                table[f"{name}.{overload}"] = self._comparison(getattr(aten, name), overload)
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
        table["fill_.Tensor"] = lambda x, value: x.copy_(value) if value.is_cuda else self._fill(x, value.item())
        table["zero_"] = lambda x: self._fill(x, 0)
        for name in DRAWN:
            packet, _, overload = name.partition(".")
            if hasattr(getattr(aten, packet, None), overload or "default"):
                table[name] = self._draw
        table["masked_fill_.Scalar"] = self._masked_fill
        table["masked_fill_.Tensor"] = self._masked_fill
        table["index_put_"] = self._index_put
        table["roll"] = self._roll
        table["flip"] = self._flip
        return table

    @staticmethod
    def _isfinite(x):
        if not x.is_floating_point():
            return aten.ones_like.default(x, dtype=torch.bool)
        return aten.mul.Tensor(aten.eq.Tensor(x, x), aten.ne.Scalar(aten.abs.default(x), float("inf")))

    # ---- working out -------------------------------------------------------------------------------------------
    def _by_element(self, operation, arguments, options):
        """The operation on known values: a host tensor, Uniform, or None."""
        known, uniform, some_uniform = [], True, False
        for argument in arguments:
            if isinstance(argument, torch.Tensor):
                argument = self._values.of(argument)
                if argument is None:
                    return None
                if isinstance(argument, Uniform):
                    some_uniform = True
                    argument = made.tensor(argument.value)
                elif argument.dim():
                    uniform = False
            known.append(argument)
        if some_uniform and not uniform:
            return None
        result = operation(*known, **options)
        return Uniform(result.item()) if some_uniform else result

    def _on_host(self, operation, arguments, options):
        """The operation on tensors that are known as they are; None where one of them is not."""
        unknown = False

        def known(argument):
            nonlocal unknown
            if isinstance(argument, (list, tuple)):
                return [known(one) for one in argument]
            if not isinstance(argument, torch.Tensor) or unknown:
                return argument
            value = self._values.whole(argument)
            unknown = value is None
            return value

        arguments = [known(argument) for argument in arguments]
        return None if unknown else operation(*arguments, **options)

    def _written(self, operation, arguments, options):
        """What is in the first tensor after the operation has written to it: known if it was before, or if nothing of
        it is left, as in an inverse permutation."""
        value = self._on_host(operation, arguments, options)
        first, *others = arguments
        if value is not None or self._values.whole(first) is not None:
            return value
        one, other = (self._on_host(operation, (made.full(first.shape, fill, dtype=first.dtype), *others), options)
                      for fill in (0, 1))
        return one if one is not None and torch.equal(one, other) else None

    def _absorbed(self, name, operands):
        """What the operation comes to where one operand alone decides it, else None."""
        absorbing = ABSORBING.get(name)
        for operand in operands if absorbing is not None else ():
            value = self._values.of(operand) if isinstance(operand, torch.Tensor) else operand
            if value is None or name == "bitwise_or" and _promoted(operands) is not torch.bool:
                continue
            value = value.value if isinstance(value, Uniform) else value
            truths = value.bool() if isinstance(value, torch.Tensor) else made.tensor(bool(value))
            if truths.numel() and bool((truths == absorbing).all()):
                return Uniform(absorbing)
        return None

    def _all_the_same(self, tensors):
        """What all elements of all of them are, if that is one."""
        values = [self._values.of(tensor) for tensor in tensors]
        if all(isinstance(value, Uniform) and value.value == values[0].value for value in values):
            return values[0]
        return None

    # ---- kinds of operations -----------------------------------------------------------------------------------
    def _elementwise(self, packet, overload, out_overload):
        operation, variant = getattr(packet, overload), Variant(packet, out_overload)
        name = packet.__name__

        def run(*arguments, **options):
            arguments = variant.operands(arguments)
            operands = arguments[1:] if name == "where" else arguments
            dtype = torch.bool if name.startswith("logical") else _promoted(operands)
            out = variant(*arguments, **options, out=made.empty(0, dtype=dtype, device=_device(arguments)))
            if out.numel() and not out.is_floating_point() and not out.is_complex():
                value = self._by_element(operation, arguments, options)
                if value is None:
                    value = self._absorbed(name, operands)
                if value is not None:
                    self._values.put(out, value)
            return out

        return run

    def _tensorwise(self, packet, overload, out_overload, types):
        operation, variant = getattr(packet, overload), Variant(packet, out_overload)

        def run(*arguments, **options):
            arguments = variant.operands(arguments)
            first = arguments[0][0] if isinstance(arguments[0], (list, tuple)) else arguments[0]
            same = _promoted(arguments[0]) if packet is aten.cat else first.dtype
            dtypes = [same if kind == "same" else getattr(torch, kind) for kind in types]
            device = _device(arguments)
            outs = {name: made.empty(0, dtype=dtype, device=device) for name, dtype in zip(variant.outs, dtypes)}
            result = variant(*arguments, **options, **outs)
            if not first.is_floating_point() and not first.is_complex() and first.is_cuda:
                value = self._on_host(operation, arguments, options)
                if value is None and packet is aten.cat:
                    value = self._all_the_same(arguments[0])
                if value is not None:
                    for out, one in zip(outs.values(), value if len(outs) > 1 else (value,)):
                        self._values.put(out, one)
            return result

        return run

    def _in_place(self, packet, overload, out_overload):
        functional = getattr(aten, packet.__name__.rstrip("_"))
        operation, variant = getattr(functional, overload), Variant(functional, out_overload)
        work_out = self._written if functional is aten.scatter else self._on_host

        def run(tensor, *others, **options):
            arguments = variant.operands((tensor, *others))
            value = work_out(operation, arguments, options) if is_small(tensor) else None
            if value is None and not tensor.is_floating_point() and not tensor.is_complex():
                value = self._absorbed(functional.__name__, arguments)
            variant(*arguments, **options, out=tensor)
            self._values.put(tensor, value)
            return tensor

        return run

    def _factorization(self, packet, out_overload):
        variant = Variant(packet, out_overload)

        def run(tensor, *others, **options):
            outs = {name: made.empty(0, dtype=torch.int32 if name in ("pivots", "info") else tensor.dtype,
                                     device=tensor.device) for name in variant.outs}
            result = variant(tensor, *others, **options, **outs)
            self._values.put(outs["info"], Uniform(0))
            return result

        return run

    def _comparison(self, packet, overload):
        operation, variant = getattr(packet, overload), Variant(packet, f"{overload}_out")

        def run(left, right):
            left, right = variant.operands((left, right))
            out = variant(left, right, out=made.empty(0, dtype=torch.bool, device=_device((left, right))))
            if out.numel():
                value = self._by_element(operation, (left, right), {})
                if value is None:
                    value = self._supposed(operation, packet.__name__, left, right)
                if value is not None:
                    self._values.put(out, value)
            return out

        return run

    def _supposed(self, operation, name, left, right):
        """A comparison of what nobody computed: with itself, or with a number that a healthy value is far from."""
        typical = made.tensor(_TYPICAL if left.is_floating_point() else 1)
        if isinstance(right, torch.Tensor):
            if left.data_ptr() == right.data_ptr() and left.shape == right.shape:
                return Uniform(operation(typical, typical).item())
            if right.dim() or right.is_cuda:
                return None
            right = right.item()
        if left.dtype is torch.bool:
            return None
        value = bool(getattr(aten, name).Scalar(typical, right))
        return Uniform(bool(self._suppose(name, value, right)))

    def _reduction(self, packet, overload, out_overload):
        operation, variant = getattr(packet, overload), Variant(packet, out_overload)
        name = packet.__name__

        def run(tensor, *arguments, **options):
            if name in ("any", "all"):
                dtype = torch.uint8 if tensor.dtype is torch.uint8 else torch.bool
            elif name in ("sum", "cumsum"):
                integral = not tensor.is_floating_point() and not tensor.is_complex()
                dtype = options.get("dtype") or (torch.int64 if integral else tensor.dtype)
            else:
                dtype = tensor.dtype
            out = variant(tensor, *arguments, **options, out=made.empty(0, dtype=dtype, device=tensor.device))
            value = self._values.of(tensor)
            if isinstance(value, Uniform):
                value = _reduced(name, value, tensor.numel() // max(out.numel(), 1))
            elif value is not None and (not tensor.is_floating_point() or name in ("any", "all", "max", "min")):
                value = operation(value, *arguments, **options)
            else:
                return out
            if value is not None:
                self._values.put(out, value)
            return out

        return run

    # ---- single operations -------------------------------------------------------------------------------------
    def _arange(self, start, end, step=1, *, out):
        host = made.arange(start, end, step, dtype=out.dtype)
        out.resize_(host.shape)
        self._values.put(out, host if is_small(host) else None)
        return out

    def _fill(self, tensor, value):
        known = is_small(tensor) or not tensor.is_floating_point()
        self._values.put(tensor, Uniform(value) if known else None)
        return tensor

    def _draw(self, tensor, *_unused, **_options):
        """Random numbers take no memory, and what they are nobody knows."""
        self._values.put(tensor, None)
        return tensor

    def _masked_fill(self, tensor, mask, value):
        """All that its kernel needs is there, so nothing remains of it but its checks and what it writes. (The other
        operations that could stand in for it put a number on the device first, which a graph's capture forbids.)"""
        if mask.dtype is not torch.bool:
            raise RuntimeError(f"masked_fill_ only supports boolean masks, but got mask with dtype {mask.dtype}")
        if mask.device != tensor.device:
            raise RuntimeError("expected self and mask to be on the same device, but got mask on "
                               f"{mask.device} and self on {tensor.device}")
        if isinstance(value, torch.Tensor) and value.dim():
            raise RuntimeError("masked_fill_ only supports a 0-dimensional value tensor, but got tensor with "
                               f"{value.dim()} dimension(s).")
        mask.expand(tensor.shape)
        known = None
        if is_small(tensor):
            number = value.to(tensor.dtype) if isinstance(value, torch.Tensor) else made.tensor(value, dtype=tensor.dtype)
            known = self._written(lambda x, m, v: x.masked_fill(m, v.to(x.dtype)), (tensor, mask, number), {})
        self._values.put(tensor, known)
        return tensor

    def _index_put(self, tensor, indices, values, accumulate=False):
        known = None
        if is_small(tensor):
            known = self._written(lambda x, i, v: x.index_put(tuple(i), v, accumulate), (tensor, indices, values), {})
        composite(aten.index_put_.default, tensor, indices, values, accumulate)
        self._values.put(tensor, known)
        return tensor

    def _roll(self, tensor, shifts, dims=()):
        if not dims:
            return torch.roll(tensor.flatten(), shifts, 0).view(tensor.shape)
        if len(dims) > 1:
            return torch.roll(torch.roll(tensor, shifts[0], dims[0]), shifts[1:], dims[1:])
        return self._moved(aten.roll.default, tensor.contiguous(), (shifts, dims))

    def _flip(self, tensor, dims):
        return self._moved(aten.flip.default, tensor, (dims,))

    def _moved(self, operation, tensor, arguments):
        out = torch.empty_like(tensor)
        value = self._on_host(operation, (tensor, *arguments), {}) if not tensor.is_floating_point() else None
        if value is not None:
            self._values.put(out, value)
        return out

    def copy(self, result, source, non_blocking):
        """copy_ onto the device."""
        value = self._values.of(source)
        alike = source.dtype is result.dtype and source.shape == result.shape \
            and source.stride() == result.stride() and result.is_contiguous()
        small = is_small(result)
        # What of an object is known may be a part: it was made longer, up to the longest of all ranks.
        moved = alike and source.is_cuda and is_of_objects(result) and not isinstance(value, Uniform)
        if isinstance(value, torch.Tensor) and not small:
            value = None
        if moved or value is not None and small:
            self._values.claim(result)
        composite(aten.copy_.default, result, source, non_blocking)
        if isinstance(value, Uniform):
            value = Uniform(made.tensor(value.value).to(result.dtype).item())
        elif moved or value is not None and alike \
                and (source.is_cuda or result.numel() * result.element_size() <= LARGEST):
            return  # a copy of bytes, which the library has seen
        self._values.put(result, value)


def composite(operation, *arguments, **options):
    """The operation as it is without a replacement for the device."""
    return operation._op_dk(torch._C.DispatchKey.CompositeExplicitAutograd, *arguments, **options)


def _promoted(operands):
    """The type that arithmetic on these comes to."""
    operands = [operand for operand in operands if isinstance(operand, (torch.Tensor, int, float, complex))]
    if len(operands) == 1:
        return operands[0].dtype
    dtype = torch.result_type(operands[0], operands[1])
    for operand in operands[2:]:
        dtype = torch.promote_types(dtype, torch.result_type(operands[0], operand))
    return dtype


def _reduced(name, uniform, count):
    if name in ("any", "all", "max", "min"):
        return Uniform(bool(uniform.value)) if name in ("any", "all") else uniform
    return Uniform(uniform.value * count) if name == "sum" else None


def _device(arguments):
    for argument in arguments:
        if isinstance(argument, (list, tuple)):
            found = _device(argument)
            if found is not None:
                return found
        elif isinstance(argument, torch.Tensor) and argument.is_cuda:
            return argument.device
    return None
