"""trainer.py lora|qlora|liger: transformers' Trainer with PEFT, on padded batches."""
import sys
import tempfile

import peft
import torch
import transformers
from tiny_llama import Data, folder

how = sys.argv[1]
options = {}
if how == "qlora":
    options["quantization_config"] = transformers.BitsAndBytesConfig(
        load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True, bnb_4bit_compute_dtype=torch.bfloat16)
model = transformers.AutoModelForCausalLM.from_pretrained(folder(), torch_dtype=torch.bfloat16, device_map={"": 0}, **options)
if how == "qlora":
    model = peft.prepare_model_for_kbit_training(model)
model = peft.get_peft_model(model, peft.LoraConfig(task_type="CAUSAL_LM", r=8, target_modules="all-linear"))
arguments = transformers.TrainingArguments(
    tempfile.mkdtemp(), per_device_train_batch_size=2, max_steps=3, bf16=True, logging_steps=1, save_strategy="no", report_to=[],
    disable_tqdm=True, use_liger_kernel=how == "liger")
transformers.Trainer(model, arguments, train_dataset=Data()).train()
