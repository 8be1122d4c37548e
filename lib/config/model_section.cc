#include "base/text.h"
#include "config/hub_name.h"
#include "config/job_sections.h"
#include "config/model_catalogue.h"
#include "config/model_reader.h"
#include "config/yaml_parser.h"
#include "plan/job_names.h"

namespace qlp {
namespace {

/// A map under `overrides`, whose keys replace those of the model's description. Null where there is none.
const TextNode* take_overrides(MapReader& map) {
  const auto* node = map.take("overrides");
  if (!node) return nullptr;
  MapReader check(node, map.place_of("overrides"), map.findings());
  return node->kind == NodeKind::map ? node : nullptr;
}

void from_config(MapReader& map, const FileReader& files, ModelSection& section) {
  const auto path = map.text("config");
  const auto* overrides = take_overrides(map);
  if (!path) return;
  auto document = read_model_config(path_beside(map.place_of("config").position.file, *path), files, overrides);
  if (!document) {
    for (auto& error : document.error()) {
      // A file that is not there is an error of the job file: it named it.
      const bool unreadable = error.code == "cannot-read" || error.code == "file-too-large";
      error.key_path = error.key_path.empty() ? "model.config" : "model.config: " + error.key_path;
      if (unreadable) error.position = map.place_of("config").position;
    }
    map.findings().append(std::move(document.error()));
    return;
  }
  section.model = std::move(document->model);
  section.checkpoint_quantization = document->quantization;
  section.known = true;
  map.findings().append(std::move(document->notes));
}

/// Descriptions of the catalogue are complete: what they leave out is no default worth a note.
ModelSpec read_catalogue_model(const CatalogueModel& model, const TextNode* overrides, Findings& findings) {
  const auto file = "configs/models/" + std::string(model.name) + ".yaml";
  auto shapes = parse_yaml(model.yaml, file);
  if (!shapes) return findings.append(std::move(shapes.error())), ModelSpec{};
  if (overrides) shapes = overlaid(**shapes, *overrides);
  MapReader reader(shapes->get(), {"model.overrides", (*shapes)->position}, findings);
  ModelSpec spec = read_shapes(reader);
  reader.finish();
  if (spec.name.ends_with(" by shapes")) spec.name = model.name;
  return spec;
}

void from_catalogue(MapReader& map, ModelSection& section) {
  const auto name = map.text("name");
  const auto* overrides = take_overrides(map);
  if (!name) return;
  const auto* model = find_model(*name);
  if (!model) {
    const auto names = model_names();
    const auto near = closest(*name, names);
    const bool of_hub = name->find('/') != std::string::npos;
    const auto* meant = model_of_hub(*name);
    map.refuse("name", "unknown-model", "no model is known as '" + name->substr(0, 60) + "'",
               meant    ? "did you mean " + std::string(meant->name) + "?"
               : of_hub ? "give its config.json: --model FILE"
               : near   ? "did you mean " + std::string(*near) + "?"
                        : "known names: " + join(names));
    return;
  }
  Findings findings;
  section.model = read_catalogue_model(*model, overrides, findings);
  section.known = !findings.has_errors();
  map.findings().append(findings.take_wrong());
}

}  // namespace

Result<ModelSpec> catalogue_spec(const CatalogueModel& model) {
  Findings findings;
  auto spec = read_catalogue_model(model, nullptr, findings);
  if (findings.has_errors()) return Unexpected{findings.take_wrong()};
  return spec;
}

ModelSection read_model_section(const Section& where, const FileReader& files, Findings& findings) {
  ModelSection section;
  if (!where.node) {
    findings.error("missing-key", where.place,
                   "model is missing: give config (a path), name (of the catalogue), or the layer shapes");
    return section;
  }
  if (where.node->kind == NodeKind::scalar) {
    const std::string& text = where.node->text;
    const bool of_file = text.ends_with(".json") || text.starts_with(".") || text.starts_with("/");
    const auto* meant = model_of_hub(text);
    findings.error("wrong-type", where.place, "expected a map of keys and values, found " + describe(*where.node),
                   of_file ? "write {config: FILE}"
                   : meant
                       ? "write {name: " + std::string(meant->name) + "}"
                       : "write {config: FILE} with its config.json, or {name: NAME} with one of qlora-plan models");
    return section;
  }
  MapReader map(where.node, where.place, findings);
  const bool spelled_out = map.has("hidden_size") || map.has("family");
  if (map.has("config")) {
    from_config(map, files, section);
    for (const std::string_view other : {"name", "hidden_size", "family"})
      if (map.take(other))
        map.refuse(other, "bad-value", "model has both config and " + std::string(other) + ": give one of them");
  } else if (map.has("name") && !spelled_out) {
    from_catalogue(map, section);
  } else if (spelled_out) {
    section.model = read_shapes(map);
    section.known = true;
  } else if (where.node->kind == NodeKind::map) {
    findings.error("missing-key", where.place,
                   "model says nothing: give config (a path), name (of the catalogue), or the layer shapes");
    for (const std::string_view key : {"config", "name", "family", "overrides"}) map.take(key);
  }
  section.dtype = map.dtype_or("dtype", kFloatDTypes, DType::bfloat16);
  section.loading = map.choice_or("loading", Loading::automatic);
  if (map.has("stacked_experts")) section.model.stacked_experts = map.boolean_or("stacked_experts", false);
  map.finish();
  return section;
}

}  // namespace qlp
