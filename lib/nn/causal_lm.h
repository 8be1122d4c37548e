// A decoder with its embedding, final norm and head: what transformers calls ...ForCausalLM.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "nn/causal_mask.h"
#include "nn/decoder_layer.h"
#include "nn/embedding.h"
#include "nn/loss.h"

namespace qlp {

enum class Checkpointing : std::uint8_t { none, reentrant, nonreentrant };

/// How the model runs, beside what it is.
struct RunOptions {
  Checkpointing checkpointing = Checkpointing::none;
  /// The hooks of a layer stand outside of its checkpointed region (FSDP1 on layers that checkpoint themselves).
  bool hooks_outside_checkpoint = false;
  bool input_requires_grad = false;  ///< enable_input_require_grads(): the embedding's output is a leaf that wants one
  /// Label tokens of an optimizer step, where the loss is divided by a number of the host.
  double item_count = 1;
  /// What the loss of a micro step counts for in its optimizer step: one over their number, or one.
  double loss_weight = 1;
  /// Where somebody has cut the sequence: the positions of what is left, and labels that are moved by one already; the
  /// model uses these.
  Tensor positions, shifted_labels;
  ModelBehaviour behaviour;
};

/// What families do around their layers.
struct ModelTraits {
  EmbeddingScale scales_embedding = EmbeddingScale::none;
  double embedding_scale = 1;
  double logit_cap = 0;    ///< Gemma 2; 0: none
  double logit_scale = 0;  ///< what they are multiplied by (Cohere, and Granite, whose quotient it is); 0: nothing
  std::int64_t sliding_window = 0;  ///< 0: none
  /// Gemma 2 of transformers 4.48 makes one causal mask, always, and its sliding layers narrow it.
  bool layers_narrow_masks = false;
  bool caches_in_training = true;  ///< not Gemma 2
  /// A dict of masks by layer type, and one of what they were made from, hold their tensors (Qwen and Gemma 2 from 4.53
  /// on).
  bool masks_by_layer_type = false;
  bool makes_every_mask = false;        ///< full and sliding ones, whatever layers there are
  bool masks_empty_window = false;      ///< sliding ones where there is no window, too
  bool hands_on_both_rotaries = false;  ///< each layer gets the tables of both kinds of layers, and picks
  bool holds_last_output = false;       ///< what the last layer gave, in a tuple, until the decoder is done
  AttentionKernel kernel = AttentionKernel::sdpa;
  MaskMaker mask_maker = MaskMaker::broadcast;
};

struct CausalLmOutput {
  Tensor loss, logits;
  Tensor hidden;  ///< of a stage that is not the last: what the next one gets
  std::vector<std::pair<Tensor, Tensor>> cache;
};

/// A stage of a pipeline has the embedding only if it is the first, norm and head only if it is the last.
struct CausalLmParts {
  std::unique_ptr<Embedding> embedding;
  std::vector<std::unique_ptr<DecoderLayer>> layers;
  std::unique_ptr<RmsNorm> norm;
  std::unique_ptr<RotaryEmbedding> rotary;          ///< none where every attention has its own
  std::unique_ptr<RotaryEmbedding> sliding_rotary;  ///< of layers with a window, where theirs are others
  std::unique_ptr<LinearModule> head;
};

/// The model without its head, as a module: what transformers calls ...Model.
class Decoder final : public Module {
 public:
  explicit Decoder(CausalLmParts& parts);
};

class CausalLm final : public Module {
 public:
  CausalLm(CausalLmParts parts, ModelTraits traits);
  /// ids and labels [B, S] of int64; a later stage gets hidden states [B, S, H] in place of ids.
  CausalLmOutput forward(Context& ctx, const Tensor& ids, const Tensor& labels, const Tensor& num_items,
                         const RunOptions& options);

  /// In the order of named_buffers().
  std::vector<ModuleBuffer> buffers();
  CausalLmParts& parts() { return parts_; }

 private:
  /// What layers get by whether they attend through a window.
  struct ByLayerType {
    LayerInputs full, sliding;
  };
  void make_masks(Context& ctx, const Tensor& hidden, ByLayerType& inputs) const;
  void make_rotaries(Context& ctx, const Tensor& hidden, const Tensor& positions, ByLayerType& inputs) const;
  /// The hidden states after the final norm.
  Tensor decode(Context& ctx, const Tensor& ids, const Tensor& num_items, CausalLmOutput& output,
                const RunOptions& options);
  Tensor run_layer(Context& ctx, DecoderLayer& layer, const Tensor& hidden, const LayerInputs& inputs,
                   const RunOptions& options);
  CausalLmParts parts_;
  Decoder decoder_;
  ModelTraits traits_;
};

}  // namespace qlp
