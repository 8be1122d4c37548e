#include "report/checkpoint_text.h"

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "report/json_parts.h"

namespace qlp {

std::string checkpoint_text(const CheckpointSummary& summary) {
  return harmless(summary.directory) + ": " + harmless(summary.model) + " (" + harmless(summary.model_class) + "), " +
         with_commas(summary.parameters) + " parameters in " + with_commas(summary.tensors) + " tensors, " +
         summary.format + " " + std::string(name_of(summary.dtype)) + "\n" + with_commas(summary.files) +
         (summary.files == 1 ? " file of " : " files of ") + format_size(summary.size) + " that take " +
         format_size(summary.disk) + " on the disk; names from " + summary.names_from + ", tokenizer " +
         summary.tokenizer + "\n";
}

std::string checkpoint_json(const CheckpointSummary& summary) {
  return document_text({{"directory", summary.directory},
                        {"model", summary.model},
                        {"model_class", summary.model_class},
                        {"names_from", summary.names_from},
                        {"format", summary.format},
                        {"dtype", name_of(summary.dtype)},
                        {"parameters", summary.parameters},
                        {"tensors", summary.tensors},
                        {"files", summary.files},
                        {"total_size_bytes", summary.size.count()},
                        {"disk_bytes", summary.disk.count()},
                        {"tokenizer", summary.tokenizer}});
}

}  // namespace qlp
