#include "model/parameter_count.h"

#include "model/family_design.h"

namespace qlp {
namespace {

/// What the norms of one decoder layer hold: those of the block, and of q and k over one head or over all.
std::int64_t norm_parameters(const ModelSpec& s) {
  const FamilyDesign& design = design_of(s.family);
  const std::int64_t block = design.norms.count() * s.hidden_size;
  switch (design.head_norm) {
    case HeadNorm::none:
      break;
    case HeadNorm::each:
    case HeadNorm::each_at_last:
      return block + 2 * s.head_dim;
    case HeadNorm::joined:
      return block + (s.num_attention_heads + s.num_key_value_heads) * s.head_dim;
  }
  return block;
}

/// Of all layers: gate, up and down of a dense MLP; or those of each expert beside the router's rows, and those of the
/// expert that is shared beside its gate.
std::int64_t feed_forward_parameters(const ModelSpec& s) {
  const auto bias = s.mlp_bias ? 2 * s.intermediate_size + s.hidden_size : 0;
  const auto dense = 3 * s.hidden_size * s.intermediate_size + bias;
  if (!s.experts) return s.num_hidden_layers * dense;
  const auto shared = s.experts->shared_expert_intermediate_size, width = s.experts->intermediate_size;
  const auto biases = design_of(s.family).biased_stacks ? 2 * width + s.hidden_size + 1 : 0;
  const auto sparse = s.experts->num_experts * (3 * s.hidden_size * width + s.hidden_size + biases) +
                      (shared ? 3 * s.hidden_size * shared + s.hidden_size : 0);
  std::int64_t total = 0;
  for (std::int64_t i = 0; i < s.num_hidden_layers; ++i) total += s.experts->in_layer(i) ? sparse : dense;
  return total;
}

}  // namespace

std::uint64_t parameter_count(const ModelSpec& s) {
  const auto queries = s.num_attention_heads * s.head_dim;
  const auto keys = s.num_key_value_heads * s.head_dim;
  // Fused projections (Phi-3's qkv_proj and gate_up_proj) hold the sum of their parts.
  auto layer = 2 * s.hidden_size * queries + 2 * s.hidden_size * keys;
  if (s.qkv_bias) layer += queries + 2 * keys;
  if (s.attention_bias) layer += s.hidden_size;
  if (design_of(s.family).attention_sinks) layer += s.num_attention_heads;
  layer += norm_parameters(s);

  const auto embedding = s.vocab_size * s.hidden_size;
  const auto final_norm = s.hidden_size;
  const auto total = (s.tie_word_embeddings ? 1 : 2) * embedding + s.num_hidden_layers * layer +
                     feed_forward_parameters(s) + final_norm;
  return static_cast<std::uint64_t>(total);
}

}  // namespace qlp
