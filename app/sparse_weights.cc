// A checkpoint of any size with no data, for programs that are to be traced.
#include <algorithm>
#include <array>
#include <filesystem>

#include "app/checkpoint_folder.h"
#include "app/child_process.h"
#include "app/commands.h"
#include "app/embedded.h"
#include "app/interruption.h"
#include "app/job_input.h"
#include "app/log.h"
#include "app/output.h"
#include "base/refusal.h"
#include "checkpoint/model_config.h"
#include "checkpoint/model_tensors.h"
#include "checkpoint/python_listing.h"
#include "checkpoint/source.h"
#include "checkpoint/weight_format.h"
#include "report/checkpoint_text.h"
#include "step/load_order.h"

namespace qlp::app {
namespace {

/// Everything that makes a tokenizer, where the source has one.
constexpr std::array<std::string_view, 9> kTokenizerFiles{
    "tokenizer.json",    "tokenizer_config.json", "tokenizer.model",     "special_tokens_map.json",
    "added_tokens.json", "chat_template.json",    "chat_template.jinja", "vocab.json",
    "merges.txt"};

Result<WeightFormat> chosen_format(const SparseWeightsArguments& arguments, const CheckpointSource& source,
                                   DType dtype) {
  if (!arguments.format) return stored_format(source);
  PackedSpec packed;
  packed.group_size = arguments.group_size.value_or(packed.group_size);
  switch (*arguments.format) {
    case CheckpointFormat::gptq:
      return WeightFormat{GptqFormat{packed}};
    case CheckpointFormat::awq:
      return WeightFormat{AwqFormat{packed}};
    case CheckpointFormat::bnb_4bit: {
      const QuantizationSpec usual{.double_quant = true, .compute_dtype = dtype};
      const bool given = source.quantization && !source.quantization->eight_bit();
      return WeightFormat{FourBitWeights{given ? *source.quantization : usual}};
    }
    case CheckpointFormat::mxfp4:
      return WeightFormat{Mxfp4Format{}};
    case CheckpointFormat::plain:
      break;
  }
  return WeightFormat{PlainFormat{}};
}

/// A mixture has no agreed layout in packed formats, but for the one that is for the experts of gpt-oss alone
/// (transformers integrations/mxfp4.py, 4.57 to 5.24).
Diagnostics check_format(const WeightFormat& format, const CheckpointSource& source, bool from_python) {
  const TextNode* const type = source.config ? find(*source.config, "model_type") : nullptr;
  if (std::holds_alternative<Mxfp4Format>(format) && (!type || type->text != "gpt_oss"))
    return {refusal("mxfp4-of-others", "transformers reads experts in MXFP4 for gpt-oss alone", "",
                    "--format plain, or a config.json of gpt_oss")};
  const bool known = std::holds_alternative<PlainFormat>(format) || std::holds_alternative<Mxfp4Format>(format);
  if (known || from_python || !source.model || !source.model->experts) return {};
  return {refusal("mixture-of-packed-experts",
                  "experts in " + std::string(name_of(format)) +
                      " are not written: transformers 5 runs them as one stack, which the format does not know",
                  "", "--format plain, and quantize when loading")};
}

struct NamedTensors {
  std::vector<StoredTensor> tensors;
  std::string names_from;
};

Result<NamedTensors> tensors_of(const CheckpointSource& source, const std::optional<std::string>& python,
                                const std::string& config_folder, DType dtype) {
  if (!python) {
    if (source.model) return NamedTensors{model_tensors(*source.model, dtype), "qlora-plan"};
    Diagnostics errors = source.unknown;
    errors.push_back(refusal("unknown-layers", "the names and shapes of its tensors are not known here", "",
                             "--from-python=PYTHON takes them from the transformers of that interpreter"));
    return Unexpected{std::move(errors)};
  }
  const auto child = run_for_answer({*python, "-c", std::string(meta_names_script()), config_folder});
  const auto failed = [](const std::string& why) {
    return Unexpected{Diagnostics{refusal("python-failed", why, "", "")}};
  };
  if (interruption_noted()) throw Interrupted{};
  if (!child) return failed(child.error());
  if (!child->end.succeeded()) return failed(*python + " ended with " + child->end.text());
  auto listing = read_python_listing(child->output, dtype);
  if (!listing) return Unexpected{std::move(listing.error())};
  return NamedTensors{std::move(listing->tensors), "transformers " + listing->transformers};
}

std::string put_tokenizer(CheckpointFolder& folder, const CheckpointSource& source, const TextNode& config) {
  const auto there = source.folder.empty() ? std::vector<std::string>{} : DiskFiles{}.list(source.folder);
  const auto has = [&](std::string_view name) { return std::ranges::find(there, name) != there.end(); };
  const bool complete = has("tokenizer.json") || has("tokenizer.model") || has("vocab.json");
  if (complete) {
    for (const auto name : kTokenizerFiles)
      if (has(name)) folder.copy((std::filesystem::path(source.folder) / name).string(), std::string(name));
    return "copied";
  }
  const auto made = tokenizer_for(config);
  for (const TextFile& file : made) folder.write(file);
  return made.empty() ? "none" : "written";
}

std::string class_of(const TextNode& config) {
  const TextNode* names = find(config, "architectures");
  return names && !names->items.empty() ? names->items.front()->text : "no architecture";
}

ExitCode refuse(const Diagnostics& errors, const CommonArguments& common) {
  show_diagnostics(errors, common);
  return ExitCode::bad_input;
}

ExitCode write_checkpoint(const SparseWeightsArguments& arguments, const CheckpointSource& source) {
  const DType dtype = arguments.dtype.value_or(source.dtype.value_or(DType::bfloat16));
  const auto format = chosen_format(arguments, source, dtype);
  if (!format) return refuse(format.error(), arguments.common);
  if (auto errors = check_format(*format, source, arguments.python.has_value()); !errors.empty())
    return refuse(errors, arguments.common);
  const auto config = as_stored(*source.config, dtype, quantization_config(*format));
  if (!config) return refuse(config.error(), arguments.common);

  CheckpointFolder folder(arguments.directory);
  if (arguments.python) {
    const auto bare = as_stored(*source.config, dtype, "");  // no quantizer is needed to list names
    folder.write(TextFile{"config.json", json_text(**bare)});
  }
  auto named = tensors_of(source, arguments.python, folder.path(), dtype);
  if (!named) return refuse(named.error(), arguments.common);
  const std::uint64_t parameters = count_elements(named->tensors);
  const auto stored = quantized(std::move(named->tensors), *format);
  if (!stored) return refuse(stored.error(), arguments.common);

  const auto checkpoint = sparse_checkpoint(**config, *stored, arguments.shard_size.value_or(kCheckpointFileBytes));
  for (const TextFile& file : checkpoint.texts) folder.write(file);
  for (const ShardFile& file : checkpoint.shards) folder.write(file);
  const std::string tokenizer = put_tokenizer(folder, source, **config);
  const CheckpointSummary summary{.directory = arguments.directory,
                                  .model = source.name,
                                  .model_class = class_of(**config),
                                  .names_from = named->names_from,
                                  .format = std::string(name_of(*format)),
                                  .dtype = dtype,
                                  .parameters = parameters,
                                  .tensors = checkpoint.tensors,
                                  .files = checkpoint.shards.size(),
                                  .size = checkpoint.size,
                                  .disk = Bytes{folder.publish()},
                                  .tokenizer = tokenizer};
  if (arguments.common.json) write_result(*arguments.common.json, checkpoint_json(summary));
  if (!arguments.common.json || *arguments.common.json != "-") write_stdout(checkpoint_text(summary));
  return ExitCode::fits;
}

}  // namespace

ExitCode run_command(const SparseWeightsArguments& arguments) {
  const bool packs = arguments.format == CheckpointFormat::gptq || arguments.format == CheckpointFormat::awq;
  if (arguments.group_size && !packs) {
    log_error("--group-size goes with --format gptq or awq");
    return ExitCode::bad_input;
  }
  if (const auto reason = why_not_ours(arguments.directory)) {
    log_error("cannot write " + arguments.directory + ": " + *reason);
    return ExitCode::bad_input;
  }
  const auto source = read_source(arguments.source, arguments.layers, DiskFiles{});
  if (!source) return refuse(source.error(), arguments.common);
  return write_checkpoint(arguments, *source);
}

}  // namespace qlp::app
