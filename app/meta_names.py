"""Lists the tensors that a checkpoint of a model holds, by the transformers that runs this, with no memory for them.

    python - CONFIG_DIR        prints JSON: {"transformers", "class", "tensors": [...]} or {"error": reason}
"""

import json
import os
import sys


def model_class(transformers, config):
    """The class that the checkpoint was saved from, else the one that AutoModelForCausalLM would take."""
    for name in getattr(config, "architectures", None) or []:
        if hasattr(transformers, name):
            return getattr(transformers, name)
    mapping = transformers.AutoModelForCausalLM._model_mapping
    if type(config) in mapping:
        return mapping[type(config)]
    raise ValueError(f"transformers {transformers.__version__} has no class for {getattr(config, 'architectures', None)}")


def make(cls, config):
    make_model = getattr(cls, "_from_config", cls)
    return make_model(config)


def tied_names(model, tensors):
    """Names that save_pretrained leaves out: of tensors that are one, all but the first."""
    seen, tied = {}, set()
    for name, tensor in tensors.items():
        first = seen.setdefault(id(tensor), name)
        if first != name:
            tied.add(name)
    config = model.config.get_text_config() if hasattr(model.config, "get_text_config") else model.config
    if getattr(config, "tie_word_embeddings", False) or getattr(model.config, "tie_word_embeddings", False):
        tied |= {name for name in getattr(model, "_tied_weights_keys", None) or [] if name in tensors}
    return tied


def listing(folder):
    import torch
    import transformers

    config = transformers.AutoConfig.from_pretrained(folder)
    cls = model_class(transformers, config)
    with torch.device("meta"):
        model = make(cls, config)
    parameters = dict(model.named_parameters(remove_duplicate=False))
    linear = {
        f"{name}.weight"
        for name, module in model.named_modules()
        if isinstance(module, torch.nn.Linear) and module is not model.get_output_embeddings()
    }
    tensors = {name: parameters.get(name, tensor) for name, tensor in model.state_dict(keep_vars=True).items()}
    left_out = tied_names(model, tensors)
    rows = [
        {
            "name": name,
            "dtype": str(tensor.dtype).removeprefix("torch."),
            "shape": list(tensor.shape),
            "parameter": name in parameters,
            "linear": name in linear,
        }
        for name, tensor in tensors.items()
        if name not in left_out
    ]
    return {"transformers": transformers.__version__, "class": cls.__name__, "tensors": rows}


def main():
    os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error", CUDA_VISIBLE_DEVICES="")
    result = sys.stdout
    sys.stdout = sys.stderr  # libraries may print
    try:
        answer = listing(sys.argv[1])
    except ImportError as error:
        answer = {"error": f"{sys.executable} cannot import what lists the names: {error}"}
    except Exception as error:  # whatever a modeling file raises is the reason
        answer = {"error": f"transformers could not make the model: {type(error).__name__}: {error}"}
    json.dump(answer, result)


main()
