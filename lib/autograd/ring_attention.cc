#include "autograd/ring_attention.h"

#include <utility>

#include "autograd/attention_options.h"
#include "autograd/flash_kernel.h"
#include "autograd/record.h"
#include "autograd/ring_rotater.h"
#include "tensor/compute.h"
#include "tensor/factories.h"

namespace qlp {
namespace {

// The names are Python's; what they hold, and until when, is what matters here.

constexpr int kRows = 2;  // the dimension of the sequence

Tensor contiguous_copy(Context& ctx, const Tensor& x) {
  if (x.contiguous()) return x;
  Tensor copy = empty(ctx, x.shape(), x.dtype(), Op::contiguous);
  copy_into(ctx, copy, x);
  return copy;
}

Tensor half(const Tensor& x, int which) {
  const std::int64_t rows = x.size(kRows) / 2;
  return x.narrow(kRows, which * rows, rows);
}

/// _partial_update: a copy of which one half is another one,
Tensor with_new_half(Context& ctx, const Tensor& whole, int which, const Tensor& fresh) {
  Tensor copy = empty(ctx, whole.shape(), whole.dtype(), Op::cat);
  copy_into(ctx, half(copy, 1 - which), half(whole, 1 - which));
  copy_into(ctx, half(copy, which), fresh);
  return copy;
}
/// or is added to.
Tensor with_added_half(Context& ctx, const Tensor& whole, int which, const Tensor& addend) {
  Tensor copy = with_new_half(ctx, whole, which, half(whole, which));
  const Tensor changed = half(copy, which);
  compute(ctx, Binary::add, changed, changed, addend);
  return copy;
}

/// torch.cat([key.flatten(), value.flatten()]); what does not lie densely is copied first.
Tensor joined(Context& ctx, const Tensor& key, const Tensor& value) {
  const Tensor flat_key = contiguous_copy(ctx, key), flat_value = contiguous_copy(ctx, value);
  Tensor both = empty(ctx, {key.numel() + value.numel()}, key.dtype(), Op::cat);
  copy_elements(ctx, both.flat(0, key.numel()), flat_key);
  copy_elements(ctx, both.flat(key.numel(), value.numel()), flat_value);
  return both;
}

/// What a step of the ring looks at (Note [Context parallelism load balance algorithm for causal masking]).
enum class Part : std::uint8_t { all, first_keys, second_queries };
Part part_of(std::int64_t step, const Ring& ring) {
  if (step == 0) return Part::all;
  return step <= ring.rank ? Part::first_keys : Part::second_queries;
}

AttentionOptions options_of(const Tensor& q, Part part) {
  AttentionOptions options = attention_options(q, {}, 0);
  options.causal = part == Part::all;
  return options;
}

/// _SDPAMerger
class Merger {
 public:
  void step(Context& ctx, const FlashOutput& block, Part part) {
    const Tensor block_out = empty_like(ctx, block.out, DType::float32, Op::to_copy);
    copy_into(ctx, block_out, block.out);
    if (!out_.defined()) {
      out_ = block_out, lse_ = block.lse;
      return;
    }
    const bool partial = part == Part::second_queries;
    Tensor earlier_lse = partial ? half(lse_, 1) : lse_, earlier_out = partial ? half(out_, 1) : out_;
    // out - sigmoid(block_lse - lse) * (out - block_out)
    Tensor out, lse;
    {
      Tensor weight = difference_of(ctx, block.lse, earlier_lse);
      weight = result_of(ctx, Unary::sigmoid, weight, Op::softmax);  // of two
      Tensor difference = difference_of(ctx, earlier_out, block_out);
      const Tensor product = empty_like(ctx, difference, Op::mul);
      compute(ctx, Binary::mul, product, difference, weight.view(out_.shape().with(2, weight.size(2)).with(3, 1)));
      weight.reset(), difference.reset();
      out = difference_of(ctx, earlier_out, product);
    }
    // lse - logsigmoid(lse - block_lse)
    {
      Tensor difference = difference_of(ctx, earlier_lse, block.lse);
      const Tensor logarithm = result_of(ctx, Unary::log_sigmoid, difference, Op::log_softmax);
      difference.reset();
      lse = difference_of(ctx, earlier_lse, logarithm);
    }
    earlier_lse.reset(), earlier_out.reset();
    lse_ = partial ? with_new_half(ctx, lse_, 1, lse) : lse;
    out_ = partial ? with_new_half(ctx, out_, 1, out) : out;
  }
  FlashOutput results(Context& ctx, DType dtype) const {
    FlashOutput merged{.out = empty_like(ctx, out_, dtype, Op::to_copy), .lse = lse_};
    copy_into(ctx, merged.out, out_);
    return merged;
  }

 private:
  static Tensor difference_of(Context& ctx, const Tensor& a, const Tensor& b) {
    Tensor difference = empty_for(ctx, a, b, DType::float32, Op::sub);
    compute(ctx, Binary::add, difference, a, b, -1);
    return difference;
  }
  static Tensor result_of(Context& ctx, Unary op, const Tensor& x, Op name) {
    Tensor result = empty_like(ctx, x, name);
    compute(ctx, op, result, x);
    return result;
  }

  Tensor out_, lse_;
};

FlashOutput ring_forward(Context& ctx, const Tensor& query, const Tensor& k, const Tensor& v, const Ring& ring,
                         const AttentionBehaviour& behaviour) {
  Tensor key = contiguous_copy(ctx, k), value = contiguous_copy(ctx, v);
  const std::int64_t keys = key.numel();
  const Shape shape = key.shape();
  Merger merger;
  RingRotater rotater(ring, ring.rotation);
  Tensor next_kv, q_part, k_part, v_part;
  FlashOutput block, first;
  for (std::int64_t i = 0; i < ring.ranks; ++i) {
    if (i > 0) {
      next_kv = rotater.next_buffer();
      key = next_kv.flat(0, keys).view(shape), value = next_kv.flat(keys, keys).view(shape);
    }
    if (i < ring.ranks - 1) {
      next_kv = joined(ctx, key, value);
      rotater.exchange(ctx, std::move(next_kv));
      next_kv = {};
    }
    const Part part = part_of(i, ring);
    q_part = part == Part::second_queries ? half(query, 1) : query;
    k_part = part == Part::first_keys ? half(key, 0) : key;
    v_part = part == Part::first_keys ? half(value, 0) : value;
    block = flash_forward(ctx, q_part, k_part, v_part, behaviour, options_of(q_part, part));
    if (i == 0) first.seed = block.seed, first.offset = block.offset;
    merger.step(ctx, block, part);
  }
  FlashOutput merged = merger.results(ctx, query.dtype());
  merged.seed = first.seed, merged.offset = first.offset;
  return merged;
}

Grads ring_backward(Context& ctx, const Tensor& grad_out, const Tensor& query, const Tensor& k, const Tensor& v,
                    const FlashOutput& output, const Ring& ring) {
  const auto zeros = [&](const Tensor& like) {
    Tensor sum = empty_like(ctx, like, DType::float32, Op::zeros);
    fill(ctx, sum, 0);
    return sum;
  };
  const auto add_to = [&](const Tensor& sum, const Tensor& part) { compute(ctx, Binary::add, sum, sum, part); };
  Tensor grad_query = zeros(query), grad_key = zeros(k), grad_value = zeros(v);
  Tensor key = contiguous_copy(ctx, k), value = contiguous_copy(ctx, v);
  const std::int64_t keys = key.numel();
  const Shape shape = key.shape();
  RingRotater kv_rotater(ring, ring.rotation), dkv_rotater(ring, RingRotation::alltoall);
  Tensor buffer, next_kv, next_grad_kv, q_part, k_part, v_part, dout;
  FlashOutput out_part;
  Grads grads;
  for (std::int64_t i = 0; i < ring.ranks; ++i) {
    if (i > 0) {
      buffer = kv_rotater.next_buffer();
      key = buffer.flat(0, keys).view(shape), value = buffer.flat(keys, keys).view(shape);
    }
    if (i != ring.ranks - 1) {
      next_kv = joined(ctx, key, value);
      kv_rotater.exchange(ctx, next_kv);
    }
    const Part part = part_of(i, ring);
    const bool halves_queries = part == Part::second_queries;
    q_part = halves_queries ? half(query, 1) : query;
    k_part = part == Part::first_keys ? half(key, 0) : key;
    v_part = part == Part::first_keys ? half(value, 0) : value;
    out_part.out = halves_queries ? half(output.out, 1) : output.out;
    dout = halves_queries ? half(grad_out, 1) : grad_out;
    out_part.lse = halves_queries ? contiguous_copy(ctx, half(output.lse, 1)) : output.lse;
    grads = flash_backward(ctx, dout, q_part, k_part, v_part, out_part, options_of(q_part, part));
    if (i > 0) {
      next_grad_kv = dkv_rotater.next_buffer();
      grad_key = next_grad_kv.flat(0, keys).view(shape), grad_value = next_grad_kv.flat(keys, keys).view(shape);
    }
    if (part == Part::first_keys) {
      grad_key = with_added_half(ctx, grad_key, 0, grads[1]);
      grad_value = with_added_half(ctx, grad_value, 0, grads[2]);
    } else {
      add_to(grad_key, grads[1]), add_to(grad_value, grads[2]);
    }
    next_grad_kv = joined(ctx, grad_key, grad_value);
    dkv_rotater.exchange(ctx, next_grad_kv);
    if (halves_queries)
      grad_query = with_added_half(ctx, grad_query, 1, grads[0]);
    else
      add_to(grad_query, grads[0]);
  }
  const auto cast = [&](const Tensor& wide, DType dtype) {
    Tensor narrow = empty_like(ctx, wide, dtype, Op::to_copy);
    copy_into(ctx, narrow, wide);
    return narrow;
  };
  grad_query = cast(grad_query, query.dtype());
  next_grad_kv = cast(dkv_rotater.next_buffer(), k.dtype());
  Grads result(3);
  result[0] = grad_query;
  result[1] = next_grad_kv.strided(shape, contiguous_strides(shape));
  result[2] = next_grad_kv.strided(shape, contiguous_strides(shape), keys);
  return result;
}

struct RingBackward final : FlashNode {
  using FlashNode::FlashNode;
  Ring ring;
  Grads backward(Context& ctx, Grads& grads) override {
    const Saved saved = unpack(ctx);
    Grads result = ring_backward(ctx, grads[0], saved.q, saved.k, saved.v, saved.output, ring);
    drop_unwanted(*this, result);
    return result;
  }
};

}  // namespace

Tensor ring_attention(Context& ctx, const Tensor& q, const Tensor& k, const Tensor& v, const Ring& ring,
                      const AttentionBehaviour& behaviour) {
  const auto node = record<RingBackward>(ctx, q, k, v);
  if (node) node->save_operands(ctx, q, k, v), node->ring = ring;
  FlashOutput output = ring_forward(ctx, q, k, v, ring, behaviour);
  set_history(output.out, node);
  if (node) node->save_output(ctx, output);
  return output.out;
}

}  // namespace qlp
