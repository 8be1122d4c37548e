#include <doctest/doctest.h>

#include "config/json_parser.h"
#include "config/memory_files.h"
#include "config/model_reader.h"
#include "model/parameter_count.h"
#include "plan/job_names.h"

using namespace qlp;
using qlp::test::MemoryFiles;

namespace {

/// A config.json with the shapes of a small model and whatever else a case is about.
std::string config(const std::string& model_type, const std::string& more = "") {
  return "{\"model_type\": \"" + model_type +
         "\", \"hidden_size\": 64, \"num_hidden_layers\": 4, \"num_attention_heads\": 4, \"num_key_value_heads\": 2, "
         "\"intermediate_size\": 128, \"vocab_size\": 100" +
         more + "}";
}

Result<ModelDocument> read(const std::string& text) {
  const auto root = parse_json(text, "config.json");
  REQUIRE(root);
  return model_from_config(**root, "test");
}

ModelSpec model(const std::string& text) {
  const auto document = read(text);
  REQUIRE(document);
  return document->model;
}

std::string error_code(const std::string& text) {
  const auto document = read(text);
  REQUIRE_FALSE(document);
  return document.error().front().code;
}

std::size_t count(const Diagnostics& list, std::string_view code, std::string_view path) {
  std::size_t n = 0;
  for (const auto& d : list) n += d.code == code && d.key_path == path ? 1U : 0U;
  return n;
}

const auto kFamilyNames = {"llama",   "mistral", "qwen2",     "qwen3",       "olmo2",   "phi3",
                           "gemma2",  "mixtral", "qwen3_moe", "gemma3_text", "granite", "smollm3",
                           "glm",     "glm4",    "olmo3",     "ministral",   "gemma",   "cohere",
                           "cohere2", "olmoe",   "qwen2_moe", "gpt_oss"};

}  // namespace

TEST_CASE("config/json_model_reader: every family, by model_type or by architecture") {
  for (const std::string name : kFamilyNames) CHECK(name_of(model(config(name)).family) == name);
  auto text = config("x");
  text.replace(0, text.find(','), R"({"architectures": ["Qwen3ForCausalLM"])");
  CHECK(model(text).family == Family::qwen3);
}

TEST_CASE("config/json_model_reader: real shapes count to their published parameters") {
  // hidden_size, ... of Llama-3.2-1B's config.json: 1,235,814,400 (huggingface/peft docs/source/quicktour.md)
  const auto llama = model(R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "head_dim": 64,
      "hidden_size": 2048, "intermediate_size": 8192, "num_attention_heads": 32, "num_hidden_layers": 16,
      "num_key_value_heads": 8, "tie_word_embeddings": true, "vocab_size": 128256, "torch_dtype": "bfloat16",
      "rope_scaling": {"rope_type": "llama3", "factor": 32.0}})");
  CHECK(parameter_count(llama) == 1235814400);
  CHECK(llama.rope == RopeKind::standard);
  // Gemma-2-2B: 2,614,341,888 (huggingface/peft LoRA-torchao-8bit.ipynb); the file has no tie_word_embeddings
  const auto gemma = model(R"({"model_type": "gemma2", "head_dim": 256, "hidden_size": 2304, "vocab_size": 256000,
      "intermediate_size": 9216, "num_attention_heads": 8, "num_hidden_layers": 26, "num_key_value_heads": 4})");
  CHECK(parameter_count(gemma) == 2614341888);
}

TEST_CASE("config/json_model_reader: tied embeddings where the file is silent") {
  for (const std::string name : kFamilyNames) {
    const auto document = read(config(name));
    CHECK(document->model.tie_word_embeddings ==
          (name.starts_with("gemma") || name.starts_with("cohere") || name == "smollm3"));
    CHECK(count(document->notes, "class-default", "tie_word_embeddings") == 1);
  }
  CHECK(model(config("llama", R"(, "tie_word_embeddings": true)")).tie_word_embeddings);
  CHECK_FALSE(model(config("gemma2", R"(, "tie_word_embeddings": false)")).tie_word_embeddings);
}

TEST_CASE("config/json_model_reader: head width is its own field") {
  CHECK(model(config("llama")).head_dim == 16);
  CHECK(model(config("llama", R"(, "head_dim": 32)")).head_dim == 32);
  CHECK(model(config("llama", R"(, "head_dim": null)")).head_dim == 16);
  CHECK(model(config("llama", R"(, "head_dim": 0)")).head_dim == 16);
  CHECK(model(config("qwen3")).head_dim == 128);
  CHECK(model(config("qwen3", R"(, "head_dim": null)")).head_dim == 16);
  CHECK(model(config("gemma2")).head_dim == 256);
}

TEST_CASE("config/json_model_reader: key and value heads where the file is silent") {
  const auto without = [](const std::string& name) {
    return R"({"model_type": ")" + name +
           R"(", "hidden_size": 128, "num_hidden_layers": 1, "num_attention_heads": 64})";
  };
  CHECK(model(without("llama")).num_key_value_heads == 64);
  CHECK(model(without("phi3")).num_key_value_heads == 64);
  CHECK(model(without("mistral")).num_key_value_heads == 8);
  CHECK(model(without("qwen2")).num_key_value_heads == 32);
  CHECK(model(without("gemma2")).num_key_value_heads == 4);
}

TEST_CASE("config/json_model_reader: biases that the class has or ignores") {
  const std::string asked = R"(, "attention_bias": true, "mlp_bias": true)";
  CHECK(model(config("qwen2")).qkv_bias);
  CHECK_FALSE(model(config("qwen2", asked)).attention_bias);
  CHECK_FALSE(model(config("qwen3")).qkv_bias);
  for (const std::string name : {"llama", "qwen3", "olmo2", "gemma2"}) {
    CHECK(model(config(name, asked)).qkv_bias);
    CHECK(model(config(name, asked)).attention_bias);
    CHECK(model(config(name, asked)).mlp_bias == (name == "llama"));
  }
  for (const std::string name : {"mistral", "phi3"}) CHECK_FALSE(model(config(name, asked)).qkv_bias);
  CHECK(model(config("glm4")).qkv_bias);
  CHECK_FALSE(model(config("glm4", asked)).attention_bias);
  CHECK_FALSE(model(config("glm4", R"(, "attention_bias": false)")).qkv_bias);
}

TEST_CASE("config/json_model_reader: sliding windows where the family uses them and the file enables them") {
  const std::string window = R"(, "sliding_window": 32)";
  CHECK_FALSE(model(config("llama", window)).sliding_window);
  CHECK(model(config("mistral", window)).sliding_window == 32);
  CHECK(model(config("mistral")).sliding_window == 4096);
  CHECK_FALSE(model(config("mistral", R"(, "sliding_window": null)")).sliding_window);
  CHECK(model(config("phi3", window)).sliding_window == 32);
  CHECK_FALSE(model(config("phi3")).sliding_window);
  CHECK(model(config("gemma2")).sliding_window == 4096);
  for (const std::string name : {"qwen2", "qwen3"}) {
    CHECK_FALSE(model(config(name, window)).sliding_window);
    const auto on = window + R"(, "use_sliding_window": true, "max_window_layers": )";
    CHECK(model(config(name, on + "2")).sliding_window == 32);
    CHECK(model(config(name, on + "2")).first_sliding_layer == 2);
    CHECK_FALSE(model(config(name, on + "4")).sliding_window);
    const auto layers = window + R"(, "use_sliding_window": true, "layer_types": ["full_attention", )";
    const auto listed = layers + R"("sliding_attention", "sliding_attention", "sliding_attention"])";
    CHECK(model(config(name, listed)).first_sliding_layer == 1);
    CHECK(error_code(config(name, layers + R"("sliding_attention", "full_attention", "full_attention"])")) ==
          "not-supported");
  }
}

TEST_CASE("config/json_model_reader: layers with a window, by list or by pattern") {
  const auto slides = [](const ModelSpec& spec) {
    std::string out;
    for (std::int64_t i = 0; i < 8; ++i) out += spec.slides(i) ? 's' : 'f';
    return out;
  };
  CHECK(slides(model(config("gemma2"))) == "sfsfsfsf");
  CHECK(slides(model(config("gemma3_text"))) == "sssssfss");
  CHECK(slides(model(config("gemma3_text", R"(, "sliding_window_pattern": 3)"))) == "ssfssfss");
  CHECK(slides(model(config("gemma3_text", R"(, "_sliding_window_pattern": 2)"))) == "sfsfsfsf");
  CHECK(slides(model(config("olmo3"))) == "sssfsssf");
  CHECK(slides(model(config("ministral"))) == "ssssssss");
  CHECK(slides(model(config("ministral", R"(, "sliding_window": null)"))) == "ffffffff");
  const auto listed = [&](const std::string& letters) {
    std::string list;
    for (const char c : letters)
      list += std::string(list.empty() ? "" : ", ") + (c == 's' ? R"("sliding_attention")" : R"("full_attention")");
    return config("ministral", R"(, "layer_types": [)" + list + "]");
  };
  for (const std::string letters : {"fsssfsss", "sfsfsfsf", "ffssssss", "ssssssss", "ffffffff", "sssfsssf"})
    CHECK(slides(model(listed(letters))) == letters);
  for (const std::string letters : {"ssffssff", "sfssfsss", "fsfffsss"})
    CHECK(error_code(listed(letters)) == "not-supported");
}

TEST_CASE("config/json_model_reader: a family that is not planned is refused with its reason") {
  const auto message = [](const std::string& model_type) {
    const auto document = read(config(model_type));
    REQUIRE_FALSE(document);
    CHECK(document.error().front().code == "unsupported-model");
    return document.error().front().message;
  };
  CHECK(message("gemma3").find("gemma3_text") != std::string::npos);
  CHECK(message("starcoder2").find("drop out") != std::string::npos);
  CHECK(message("deepseek_v3").find("mixtures") != std::string::npos);
  CHECK(message("what").find("not written down") != std::string::npos);
}

TEST_CASE("config/json_model_reader: SmolLM3's layers without positions") {
  const ModelSpec spec = model(config("smollm3"));
  CHECK(spec.knows_positions(2));
  CHECK_FALSE(spec.knows_positions(3));
  CHECK_FALSE(
      model(config("smollm3", R"(, "no_rope_layers": [1, 0, 1, 0], "no_rope_layer_interval": 2)")).knows_positions(1));
  CHECK(error_code(config("smollm3", R"(, "no_rope_layers": [0, 1, 1, 1])")) == "not-supported");
  CHECK(error_code(config("smollm3", R"(, "use_sliding_window": true)")) == "not-supported");
}

TEST_CASE("config/json_model_reader: rotary tables") {
  const std::string scaling = R"(, "rope_scaling": {"type": "longrope"})";
  const auto phi = model(config("phi3", scaling + R"(, "original_max_position_embeddings": 2048)"));
  CHECK(phi.rope == RopeKind::longrope);
  CHECK(phi.original_max_position_embeddings == 2048);
  CHECK(model(config("phi3", scaling)).original_max_position_embeddings == 4096);
  CHECK(model(config("phi3", R"(, "rope_scaling": {"type": "su"})")).rope == RopeKind::longrope);
  CHECK(model(config("llama", R"(, "rope_scaling": {"type": "yarn"})")).rope == RopeKind::standard);
  CHECK(model(config("phi3", R"(, "partial_rotary_factor": 0.75)")).partial_rotary_factor == 0.75);
  // transformers 5 keeps all of it in one place
  const auto v5 = model(config("phi3", R"(, "rope_parameters": {"rope_type": "longrope", "partial_rotary_factor": 0.5,
      "original_max_position_embeddings": 1024})"));
  CHECK(v5.rope == RopeKind::longrope);
  CHECK(v5.original_max_position_embeddings == 1024);
  CHECK(v5.partial_rotary_factor == 0.5);
  CHECK(error_code(config("phi3", R"(, "partial_rotary_factor": 0)")) == "out-of-range");
}

TEST_CASE("config/json_model_reader: softcaps are Gemma's, and null switches them off") {
  CHECK(model(config("gemma2")).attn_logit_softcapping == 50.0);
  CHECK(model(config("gemma2")).final_logit_softcapping == 30.0);
  CHECK_FALSE(model(config("gemma2", R"(, "attn_logit_softcapping": null)")).attn_logit_softcapping);
  CHECK_FALSE(model(config("llama", R"(, "final_logit_softcapping": 30.0)")).final_logit_softcapping);
}

TEST_CASE("config/json_model_reader: dtype of either name, the newer one first") {
  CHECK(model(config("llama", R"(, "torch_dtype": "float16")")).checkpoint_dtype == DType::float16);
  CHECK(model(config("llama", R"(, "dtype": "bfloat16")")).checkpoint_dtype == DType::bfloat16);
  const auto both = read(config("llama", R"(, "dtype": "bfloat16", "torch_dtype": "float32")"));
  CHECK(both->model.checkpoint_dtype == DType::bfloat16);
  CHECK(count(both->notes, "aliases-disagree", "torch_dtype") == 1);
  CHECK_FALSE(model(config("llama", R"(, "dtype": "auto")")).checkpoint_dtype);
}

TEST_CASE("config/json_model_reader: other names of the same fields") {
  const auto document = read(R"({"model_type": "llama", "n_embd": 64, "n_layer": 2, "num_hidden_layers": 3,
      "n_head": 4, "num_kv_heads": 2, "kv_channels": 8, "ffn_hidden_size": 128, "padded_vocab_size": 50,
      "max_seq_len": 256})");
  REQUIRE(document);
  const auto& m = document->model;
  CHECK(m.hidden_size == 64);
  CHECK(m.num_hidden_layers == 3);
  CHECK(count(document->notes, "aliases-disagree", "n_layer") == 1);
  CHECK(m.num_key_value_heads == 2);
  CHECK(m.head_dim == 8);
  CHECK(m.intermediate_size == 128);
  CHECK(m.vocab_size == 50);
  CHECK(m.max_position_embeddings == 256);
}

TEST_CASE("config/json_model_reader: gaps are filled by the model class and told, but never the three that matter") {
  const auto sparse = read(R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2,
      "num_attention_heads": 4, "some_vendors_key": {"a": [1, Infinity]}})");
  REQUIRE(sparse);
  CHECK(sparse->model.intermediate_size == 11008);
  CHECK(sparse->model.vocab_size == 32000);
  for (auto key : {"intermediate_size", "vocab_size", "max_position_embeddings", "num_key_value_heads"})
    CHECK(count(sparse->notes, "class-default", key) == 1);
  for (const std::string key : {"hidden_size", "num_hidden_layers", "num_attention_heads"}) {
    auto text = config("llama");
    text.replace(text.find(key), key.size(), "renamed");
    const auto document = read(text);
    REQUIRE_FALSE(document);
    CHECK(count(document.error(), "missing-key", key) == 1);
  }
}

TEST_CASE("config/json_model_reader: experts, by either name, with the defaults of their class") {
  const auto mixtral = model(config("mixtral"));
  REQUIRE(mixtral.experts);
  CHECK(mixtral.experts->num_experts == 8);
  CHECK(mixtral.experts->num_experts_per_tok == 2);
  CHECK(mixtral.experts->intermediate_size == mixtral.intermediate_size);
  const auto qwen = model(config("qwen3_moe", R"(, "num_experts": 12, "moe_intermediate_size": 7)"));
  CHECK(*qwen.experts == ExpertSpec{12, 8, 7, false, 1});
  CHECK(model(config("qwen3_moe", R"(, "decoder_sparse_step": 2)")).experts->in_layer(1));
  CHECK_FALSE(model(config("qwen3_moe", R"(, "decoder_sparse_step": 2)")).experts->in_layer(0));
  CHECK_FALSE(model(config("llama")).experts);
  CHECK(error_code(config("mixtral", R"(, "num_local_experts": 1)")) == "inconsistent-shapes");
  CHECK(error_code(config("mixtral", R"(, "output_router_logits": true)")) == "not-supported");
  const auto dense = model(config("qwen3_moe", R"(, "mlp_only_layers": [0])"));
  CHECK_FALSE(dense.experts->in_layer(0));
  CHECK(dense.experts->in_layer(1));
  CHECK(error_code(config("qwen3_moe", R"(, "mlp_only_layers": ["first"])")) == "wrong-value");
  const auto oss = model(config("gpt_oss", R"(, "experts_per_token": 3)"));
  CHECK(oss.experts->num_experts == 128);
  CHECK(oss.experts->num_experts_per_tok == 3);
  CHECK(oss.attention_bias);
  CHECK_FALSE(model(config("gpt_oss", R"(, "attention_bias": false)")).qkv_bias);
  const std::string packed = R"(, "quantization_config": {"quant_method": "mxfp4"})";
  CHECK(model(config("gpt_oss", packed)).mxfp4_experts);
  CHECK_FALSE(oss.mxfp4_experts);
  CHECK(error_code(config("llama", packed)) == "not-supported");
  const auto shared = model(config("qwen2_moe", R"(, "shared_expert_intermediate_size": 11, "qkv_bias": false)"));
  CHECK(shared.experts->shared_expert_intermediate_size == 11);
  CHECK_FALSE(shared.qkv_bias);
  CHECK(model(config("qwen2_moe")).qkv_bias);
  CHECK(error_code(config("qwen2_moe", R"(, "use_sliding_window": true)")) == "not-supported");
  CHECK(error_code(config("olmoe", R"(, "clip_qkv": 8.0)")) == "not-supported");
}

TEST_CASE("config/json_model_reader: values that cannot be") {
  CHECK(error_code(config("llama", R"(, "head_dim": "16")")) == "wrong-type");
  CHECK(error_code(config("llama", R"(, "head_dim": -1)")) == "out-of-range");
  CHECK(error_code(config("llama", R"(, "head_dim": 1e9)")) == "wrong-type");
  CHECK(error_code(config("llama", R"(, "tie_word_embeddings": "yes")")) == "wrong-type");
  CHECK(error_code(R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 1, "num_attention_heads": 3})") ==
        "inconsistent-shapes");
  CHECK(error_code(config("llama", R"(, "num_key_value_heads": 3)")) == "inconsistent-shapes");
  CHECK(error_code("[]") == "wrong-type");
}

TEST_CASE("config/json_model_reader: models that are not planned are refused with the reason") {
  for (const std::string name :
       {"granitemoe", "deepseek_v3", "gemma3", "falcon", "qwen3_next", "gpt2", "something-new"}) {
    const auto document = read(config(name));
    REQUIRE_FALSE(document);
    CHECK(document.error().front().code == "unsupported-model");
    CHECK(document.error().front().message.starts_with(name + " is not supported: "));
  }
  CHECK(error_code(config("llama", R"(, "architectures": ["LlamaForSequenceClassification"])")) == "unsupported-model");
  CHECK(error_code(config("llama", R"(, "num_local_experts": 8)")) == "unsupported-model");
  CHECK(error_code("{}") == "missing-key");
}

TEST_CASE("config/json_model_reader: what is not planned of a model that is gives a warning") {
  const auto document =
      read(config("llama", R"(, "hidden_act": "relu", "attention_dropout": 0.1, "resid_pdrop": 0.0)"));
  REQUIRE(document);
  CHECK(count(document->notes, "activation", "hidden_act") == 1);
  CHECK(count(document->notes, "dropout", "attention_dropout") == 1);
  CHECK(count(document->notes, "dropout", "resid_pdrop") == 0);
}

TEST_CASE("config/json_model_reader: checkpoints that are stored quantized") {
  const auto quantized = [](const std::string& block) {
    return config("llama", R"(, "quantization_config": {)" + block + "}");
  };
  const auto bnb = read(quantized(R"("quant_method": "bitsandbytes", "_load_in_4bit": true, "load_in_8bit": false,
      "bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": true, "bnb_4bit_compute_dtype": "bfloat16",
      "bnb_4bit_quant_storage": "uint8", "llm_int8_skip_modules": null)"));
  REQUIRE(bnb);
  CHECK(bnb->quantization == QuantizationSpec{.quant_type = QuantType::nf4, .double_quant = true});
  const auto bare = read(quantized(R"("load_in_4bit": true)"));
  REQUIRE(bare);
  CHECK(bare->quantization ==
        QuantizationSpec{.quant_type = QuantType::fp4, .double_quant = false, .compute_dtype = DType::float32});
  for (auto block : {R"("quant_method": "gptq", "bits": 4)", R"("quant_method": "awq")", R"("quant_method": "fp8")",
                     R"("quant_method": "bitsandbytes", "load_in_8bit": true)", R"("bits": 4)",
                     R"("load_in_4bit": true, "llm_int8_skip_modules": ["lm_head", "gate"])"})
    CHECK(error_code(quantized(block)) == "not-supported");
}

TEST_CASE("config/json_model_reader: files, folders and overrides") {
  const MemoryFiles files({{"models/tiny/config.json", config("llama")}, {"a.json", "{\n  \"x\": ,\n}"}});
  const auto folder = read_model_config("models/tiny", files, nullptr);
  REQUIRE(folder);
  CHECK(folder->model.name == "tiny");
  CHECK(read_model_config("models/tiny/config.json", files, nullptr)->model.name == "tiny");

  const auto broken = read_model_config("a.json", files, nullptr);
  REQUIRE_FALSE(broken);
  CHECK(broken.error().front().position.file == "a.json");
  CHECK(broken.error().front().position.line == 2);
  CHECK(broken.error().front().position.column == 8);
  CHECK(read_model_config("no.json", files, nullptr).error().front().code == "cannot-read");

  const auto changes = parse_json(R"({"num_hidden_layers": 1, "tie_word_embeddings": true})", "o");
  const auto changed = read_model_config("models/tiny", files, changes->get());
  REQUIRE(changed);
  CHECK(changed->model.num_hidden_layers == 1);
  CHECK(changed->model.tie_word_embeddings);
}
