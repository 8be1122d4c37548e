"""A Llama of two layers in a folder, for the programs beside it."""
import tempfile

import torch
from transformers import LlamaConfig, LlamaForCausalLM


def folder():
    config = LlamaConfig(vocab_size=512, hidden_size=256, intermediate_size=512, num_hidden_layers=2, num_attention_heads=4,
                         num_key_value_heads=2, pad_token_id=0)
    path = tempfile.mkdtemp()
    LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(path)
    return path


class Data(torch.utils.data.Dataset):
    """Texts of different lengths, padded."""

    def __len__(self):
        return 16

    def __getitem__(self, i):
        tokens = torch.randint(1, 512, (64,))
        attention = torch.ones(64, dtype=torch.long)
        attention[64 - 8 * (i % 2):] = 0
        return {"input_ids": tokens, "attention_mask": attention, "labels": tokens.masked_fill(attention == 0, -100)}
