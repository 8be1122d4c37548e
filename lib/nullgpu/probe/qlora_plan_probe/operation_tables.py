"""Which operations of PyTorch the probe replaces on the device, in tables, and their out= variants."""
import torch

from . import made

aten = torch.ops.aten

# "operation.overload out-overload": what an element becomes depends on the elements at its place alone.
BY_ELEMENT = """
add.Tensor out, sub.Tensor out, mul.Tensor out, maximum.default out, minimum.default out, remainder.Tensor Tensor_out,
floor_divide.default out, clamp.default out, clamp.Tensor Tensor_out, clamp_min.default out, clamp_max.default out,
bitwise_and.Tensor Tensor_out, bitwise_or.Tensor Tensor_out, bitwise_xor.Tensor Tensor_out, bitwise_not.default out,
abs.default out, neg.default out, sign.default out,
logical_and.default out, logical_or.default out, logical_xor.default out, logical_not.default out, where.self self_out
"""
# The result has the type of the first tensor, or the types that are named: of values and of indices.
BY_TENSOR = """
cat.default out, gather.default out, index.Tensor Tensor_out, index_select.default out, masked_select.default out,
tril.default out, triu.default out, amax.default out, amin.default out,
argmax.default out int64, argmin.default out int64, isin.Tensor_Tensor Tensor_Tensor_out bool,
scatter.src src_out, scatter.value value_out, scatter_add.default out,
max.dim dim_max same int64, min.dim dim_min same int64, sort.stable values_stable same int64, topk.default values same int64
"""
# Those of the first that write over their first tensor, by the out= variant.
IN_PLACE = """
add_.Tensor out, sub_.Tensor out, mul_.Tensor out, div_.Tensor out, remainder_.Tensor Tensor_out, clamp_.default out,
clamp_min_.default out, clamp_max_.default out, bitwise_and_.Tensor Tensor_out, bitwise_or_.Tensor Tensor_out,
bitwise_xor_.Tensor Tensor_out, bitwise_not_.default out, logical_and_.default out, logical_or_.default out,
logical_not_.default out, neg_.default out, cumsum_.default out, tril_.default out, triu_.default out,
scatter_.src src_out, scatter_.value value_out, scatter_add_.default out
"""

# Factorizations that tell in `info` where they failed: 0 says nowhere.
FACTORIZATIONS = """
linalg_cholesky_ex.default L, linalg_inv_ex.default inverse, linalg_lu_factor_ex.default out,
linalg_ldl_factor_ex.default out, _linalg_solve_ex.default result
"""

# With an operand that is this throughout, the result is as well, whatever the others are: so generated text ends at its
# greatest length, though nobody knows where it would have ended before.
ABSORBING = {"bitwise_or": True, "logical_or": True, "bitwise_and": False, "logical_and": False, "mul": False}

DRAWN = ("random_", "random_.to", "random_.from", "bernoulli_.float", "bernoulli_.Tensor", "normal_", "uniform_",
          "exponential_", "log_normal_", "geometric_", "cauchy_")


def rows(table):
    """(name, operation, overload, out= overload, types of the results) of what this torch has."""
    for row in table.split(","):
        name, out, *types = row.split()
        packet_name, overload = name.split(".")
        packet = getattr(aten, packet_name, None)
        functional = getattr(aten, packet_name.rstrip("_"), None)
        if hasattr(packet, overload) and hasattr(functional, overload) and hasattr(functional, out):
            yield name if overload != "default" else packet_name, packet, overload, out, types or ["same"]


class Variant:
    """The out= variant of an operation."""

    def __init__(self, packet, overload):
        self._operation = getattr(packet, overload)
        schema = self._operation._schema.arguments
        self.outs = [argument.name for argument in schema if argument.is_out]
        self._tensors = [at for at, argument in enumerate(schema) if str(argument.type) == "Tensor"]

    def __call__(self, *arguments, **options):
        return self._operation(*arguments, **options)

    def operands(self, arguments):
        """A number in a tensor's place reaches a replacement as a number, which only some operations take
        (torch/csrc/utils/python_arg_parser.cpp, should_allow_numbers_as_tensors)."""
        for at in self._tensors:
            if at < len(arguments) and not isinstance(arguments[at], torch.Tensor):
                beside = next(argument for argument in arguments if isinstance(argument, torch.Tensor))
                number = made.tensor(arguments[at], dtype=torch.result_type(beside, arguments[at]))
                arguments = (*arguments[:at], number, *arguments[at + 1:])
        return arguments
