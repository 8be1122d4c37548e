// What takes part in loading a model where parameters are cut among the ranks as they are made.
#pragma once

#include "nn/parameter.h"
#include "tensor/context.h"

namespace qlp {

class ParameterCutter {
 public:
  virtual ~ParameterCutter() = default;
  /// A parameter comes into being, and is cut at once.
  virtual void make(Context& ctx, Parameter& parameter, DType dtype) = 0;
  /// The same of what is replaced by `parameter` afterwards: the table of a head before it is tied.
  virtual void make_replaced(Context& ctx, const Parameter& parameter, DType dtype) = 0;
  /// Its values have been read: it is made whole for them, and cut again.
  virtual void fill(Context& ctx, Parameter& parameter) = 0;
};

}  // namespace qlp
