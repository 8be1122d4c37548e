// Which model of the catalogue a name of the Hugging Face Hub means.
#pragma once

#include <string_view>

#include "config/model_catalogue.h"

namespace qlp {

/// "meta-llama/Meta-Llama-3.1-8B-Instruct": llama-3.1-8b. Words that say how a model was tuned are passed over, as they
/// change no shape; a word that might (a size, GPTQ, a revision) is not. None where no model is left that has the name.
const CatalogueModel* model_of_hub(std::string_view name);

}  // namespace qlp
