// Which experts a token goes to, and with what weight.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "nn/param_lora.h"

namespace qlp {

/// Where tokens go in a run that computes. Evenly as the dry run takes it (torchtitan moe.py,
/// _debug_force_load_balance): the pairs of all replicas, or those of each replica, take the experts in turn.
enum class Spread : std::uint8_t { by_router, evenly, evenly_in_each_replica };

struct RouterShape {
  std::int64_t hidden = 0, experts = 0, top_k = 0;
  bool normalises = true;               ///< the weights of a token's experts sum to one
  bool weights_in_logit_dtype = false;  ///< Qwen3 casts them back; Mixtral leaves them in float32
  bool picks_first = false;             ///< the weights are a softmax of the logits that are picked; biased (GPT-OSS)
  Spread spread = Spread::by_router;
};

struct Routing {
  Tensor logits;   ///< [T, E]
  Tensor indices;  ///< [T, K] of int64
  Tensor weights;  ///< [T, K]
};

/// Of `pairs` that are sent evenly, those of place `i` among `places`: as many as others get, the first ones one more
/// where they do not divide.
constexpr std::int64_t even_part(std::int64_t pairs, std::int64_t places, std::int64_t i) {
  return pairs / places + (i < pairs % places ? 1 : 0);
}

/// softmax, topk and normalisation of logits [T, E], in float32; the weights are cast to `dtype` where one is given.
Routing route(Context& ctx, const Tensor& logits, const RouterShape& shape, std::optional<DType> dtype);

/// The tokens of pairs, each of which has `top_k` pairs behind each other (order // top_k).
Tensor token_of_pair(Context& ctx, const Tensor& order, std::int64_t top_k);

/// MixtralTopKRouter and its relatives (transformers 5), GptOssTopKRouter: a matrix of its own, no linear layer.
class TopKRouter final : public Module {
 public:
  TopKRouter(std::string name, const RouterShape& shape);
  /// hidden [T, H]
  Routing forward(Context& ctx, const Tensor& hidden);
  /// An adapter on the matrix.
  ParamLora& adapt(std::int64_t r, double scaling);

 private:
  Parameter* weight_;
  Parameter* bias_ = nullptr;
  RouterShape shape_;
  std::unique_ptr<ParamLora> lora_;
};

}  // namespace qlp
