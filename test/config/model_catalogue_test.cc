#include "config/model_catalogue.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "config/file_reader.h"
#include "config/job_reader.h"
#include "model/parameter_count.h"

using namespace qlp;

namespace {

std::uint64_t parameters_of(std::string_view name) {
  const auto text =
      "schema: 1\nmodel: {name: " + std::string(name) + "}\ntraining: {seq_len: 8}\ncluster: {gpu: A100 SXM4 80GB}\n";
  const auto document = read_job(text, "a.yaml", DiskFiles());
  REQUIRE(document);
  return parameter_count(document->job.model);
}

}  // namespace

TEST_CASE("config/model_catalogue: holds every file of configs/models") {
  const DiskFiles files;
  std::vector<std::string> names;
  for (auto name : files.list("configs/models")) names.push_back(name.substr(0, name.rfind(".yaml")));
  CHECK(names.size() >= 31);
  CHECK(std::ranges::equal(names, model_names()));
}

TEST_CASE("config/model_catalogue: names in any spelling of capitals and separators") {
  REQUIRE(find_model("llama-3.1-8b"));
  CHECK(find_model("Llama_3.1_8B") == find_model("llama-3.1-8b"));
  CHECK_FALSE(find_model("llama-3.1-8"));
  CHECK_FALSE(find_model(""));
}

TEST_CASE("config/model_catalogue: shapes add up to the models' sizes") {
  struct Row {
    std::string_view name;
    double billions;  ///< as the model card or its name says
  };
  for (const auto& [name, billions] :
       {Row{"llama-2-13b", 13.02}, {"llama-2-70b", 68.98},       {"llama-3-70b", 70.55},   {"llama-3.1-405b", 405.85},
        {"mistral-7b-v0.1", 7.24}, {"qwen2.5-0.5b", 0.49},       {"qwen2.5-1.5b", 1.54},   {"qwen2.5-3b", 3.09},
        {"qwen2.5-14b", 14.77},    {"qwen2.5-32b", 32.76},       {"qwen2.5-72b", 72.71},   {"qwen3-4b", 4.02},
        {"qwen3-14b", 14.77},      {"qwen3-32b", 32.76},         {"olmo2-13b", 13.72},     {"phi-3.5-mini", 3.82},
        {"gemma-2-9b", 9.24},      {"gemma-2-27b", 27.23},       {"granite-3.3-8b", 8.17}, {"glm-4-32b-0414", 32.57},
        {"phi-4", 14.66},          {"mistral-small-24b", 23.57}, {"falcon3-10b", 10.31}}) {
    CAPTURE(name);
    CHECK(static_cast<double>(parameters_of(name)) / 1e9 == doctest::Approx(billions).epsilon(0.005));
  }
}

TEST_CASE("config/model_catalogue: exact counts, as other people found them") {
  CHECK(parameters_of("llama-2-7b") == 6738415616);
  CHECK(parameters_of("llama-3.1-8b") == 8030261248);
  CHECK(parameters_of("llama-3.2-1b") == 1235814400);
  CHECK(parameters_of("llama-3.2-3b") == 3212749824);
  CHECK(parameters_of("gemma-2-2b") == 2614341888);
  CHECK(parameters_of("gemma-2-9b") == 9241705984);
  // As the Hub counts the weights of google/gemma-3-1b-pt, HuggingFaceTB/SmolLM3-3B, zai-org/GLM-4-9B-0414,
  // allenai/Olmo-3-1025-7B and ibm-granite/granite-3.3-2b-base.
  CHECK(parameters_of("gemma-3-1b") == 999885952);
  CHECK(parameters_of("smollm3-3b") == 3075098624);
  CHECK(parameters_of("glm-4-9b-0414") == 9400279040);
  CHECK(parameters_of("olmo3-7b") == 7298011136);
  CHECK(parameters_of("granite-3.3-2b") == 2533525504);
  CHECK(parameters_of("powerlm-3b") == 3512017152);
  // Those of google/gemma-2b, CohereLabs/c4ai-command-r-v01 and CohereLabs/c4ai-command-r7b-12-2024.
  CHECK(parameters_of("gemma-2b") == 2506172416);
  CHECK(parameters_of("command-r-35b") == 34980831232);
  CHECK(parameters_of("command-r7b") == 8028033024);
  // Those of allenai/OLMoE-1B-7B-0924, Qwen/Qwen1.5-MoE-A2.7B and Qwen/Qwen2-57B-A14B; gpt-oss as its model card
  // counts, in units of 10^9 with two digits.
  CHECK(parameters_of("olmoe-1b-7b") == 6919161856);
  CHECK(parameters_of("qwen1.5-moe-a2.7b") == 14315784192);
  CHECK(parameters_of("qwen2-57b-a14b") == 57408658944);
  CHECK(static_cast<double>(parameters_of("gpt-oss-20b")) / 1e9 == doctest::Approx(20.91).epsilon(0.0005));
  CHECK(static_cast<double>(parameters_of("gpt-oss-120b")) / 1e9 == doctest::Approx(116.83).epsilon(0.0001));
  CHECK(parameters_of("mixtral-8x7b") == 46702792704);   // mistralai/Mixtral-8x7B-v0.1's index: 93405585408 bytes
  CHECK(parameters_of("qwen3-30b-a3b") == 30532122624);  // Qwen/Qwen3-30B-A3B's index: 61064245248 bytes
}
