// Several lambdas as one visitor of a variant.
#pragma once

namespace qlp {

template <class... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};
template <class... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;

}  // namespace qlp
