#include "checkpoint/source.h"

#include <filesystem>

#include "base/refusal.h"
#include "base/text.h"
#include "checkpoint/model_config.h"
#include "config/checkpoint_quantization.h"
#include "config/config_fields.h"
#include "config/job_reader.h"
#include "config/json_parser.h"
#include "config/model_catalogue.h"
#include "config/model_reader.h"

namespace qlp {
namespace {

namespace fs = std::filesystem;

Result<CheckpointSource> from_spec(const ModelSpec& spec) {
  CheckpointSource out;
  out.name = spec.name, out.model = spec, out.config = config_of(spec), out.dtype = spec.checkpoint_dtype;
  return out;
}

Result<CheckpointSource> from_job(const std::string& path, const FileReader& files) {
  const auto text = read_text(path, files);
  if (!text) return Unexpected{text.error()};
  const auto document = read_job(*text, path, files);
  if (!document) return Unexpected{document.error()};
  auto out = from_spec(document->job.model);
  out->dtype = document->job.dtype, out->quantization = document->job.quantization;
  return out;
}

Result<CheckpointSource> from_name(const std::string& name) {
  const auto* known = find_model(name);
  if (!known) {
    const auto names = model_names();
    const auto near = closest(name, names);
    return Unexpected{Diagnostics{
        refusal("unknown-model", "no file, folder or known model is called '" + name + "'", "",
                near ? "did you mean " + std::string(*near) + "?" : "qlora-plan models lists the known ones")}};
  }
  auto spec = catalogue_spec(*known);
  if (!spec) return Unexpected{std::move(spec.error())};
  return from_spec(*spec);
}

Result<CheckpointSource> from_config(const std::string& file, const FileReader& files) {
  const auto text = read_text(file, files);
  if (!text) return Unexpected{text.error()};
  auto config = parse_json(*text, file);
  if (!config) return Unexpected{std::move(config.error())};
  CheckpointSource out;
  out.config = std::move(*config);
  if (out.config->kind != NodeKind::map)
    return Unexpected{
        Diagnostics{{Severity::error, "wrong-type", "expected a map of keys and values, found " + describe(*out.config),
                     "", out.config->position, ""}}};
  const fs::path path(file);
  out.folder = path.parent_path().string();
  out.name = path.filename() == "config.json" && path.has_parent_path() ? path.parent_path().filename().string()
                                                                        : path.stem().string();
  for (const char* key : {"dtype", "torch_dtype"})
    if (const auto* node = find(*out.config, key); node && !out.dtype) out.dtype = dtype_from_name(node->text);
  return out;
}

Result<CheckpointSource> read_whole(const std::string& word, const FileReader& files) {
  switch (files.kind_of(word)) {
    case FileReader::Kind::missing:
      return from_name(word);
    case FileReader::Kind::directory:
      return from_config((fs::path(word) / "config.json").lexically_normal().string(), files);
    case FileReader::Kind::file:
      break;
  }
  const auto extension = fs::path(word).extension();
  return extension == ".yaml" || extension == ".yml" ? from_job(word, files) : from_config(word, files);
}

}  // namespace

Result<CheckpointSource> read_source(const std::string& word, std::optional<std::int64_t> layers,
                                     const FileReader& files) {
  auto source = read_whole(word, files);
  if (!source) return source;
  if (layers) {
    auto cut = with_layers(*source->config, *layers);
    if (!cut) return Unexpected{std::move(cut.error())};
    source->config = std::move(*cut);
    source->model.reset();
  }
  if (source->model) return source;
  auto document = model_from_config(*without_quantization(*source->config), source->name);
  if (document)
    source->model = std::move(document->model);
  else
    source->unknown = std::move(document.error());
  return source;
}

Result<WeightFormat> stored_format(const CheckpointSource& source) {
  const TextNode* block = quantization_of(*source.config);
  if (!block) return WeightFormat{PlainFormat{}};
  Findings findings;
  const ConfigFields fields(*block, findings);
  const auto method = fields.text("quant_method").value_or("bitsandbytes");
  if (method == "gptq" || method == "awq") {
    PackedSpec spec;
    spec.bits = fields.integer({"bits", "w_bit"}, 2, 8).value_or(spec.bits);
    spec.group_size = fields.integer({"group_size", "q_group_size"}, 1, 1 << 20).value_or(spec.group_size);
    for (const char* part : {"dynamic", "modules_in_block_to_quantize"})
      if (fields.find(part))
        findings.error("not-supported", fields.place_of(part, fields.find(part)),
                       "not supported: layers that are quantized differently");
    if (findings.has_errors()) return Unexpected{findings.take_wrong()};
    return method == "gptq" ? WeightFormat{GptqFormat{spec}} : WeightFormat{AwqFormat{spec}};
  }
  if (method == "mxfp4") return WeightFormat{Mxfp4Format{}};
  const ConfigFields whole(*source.config, findings);
  const auto four_bit = checkpoint_quantization(whole);
  if (four_bit && !findings.has_errors()) return WeightFormat{FourBitWeights{*four_bit}};
  return Unexpected{
      Diagnostics{{Severity::error, "not-supported", "the layout of weights stored by " + method + " is not known here",
                   "quantization_config", block->position, "--format plain writes the same model unquantized"}}};
}

}  // namespace qlp
