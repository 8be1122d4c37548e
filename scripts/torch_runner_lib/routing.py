"""Where tokens go in a mixture of experts whose experts run one by one: what a run takes hangs on it."""

import sys

import torch

from . import load


def spread_evenly(model):
    """Has the routers of transformers 4 send tokens to all experts evenly, as predictions take them: pair `i` of a token
    and an expert goes to expert `i` modulo their number. Only the choice is replaced, not the weights."""
    blocks = [module for module in model.modules() if hasattr(module, "num_experts") and hasattr(module, "top_k")]
    if not blocks or load.at_least(5, 0):
        return
    for module in {sys.modules[type(block).__module__] for block in blocks}:
        module.torch = EvenTopk(blocks[0].num_experts, blocks[0].top_k)


class EvenTopk:
    """The module torch with another topk, for rows as long as there are experts."""

    def __init__(self, experts, top_k):
        self._experts, self._top_k = experts, top_k

    def __getattr__(self, name):
        return getattr(torch, name)

    def topk(self, scores, k, dim):
        values, indices = torch.topk(scores, k, dim=dim)
        if scores.shape[-1] == self._experts and k == self._top_k:
            indices.data.copy_((torch.arange(indices.numel()) % self._experts).view(indices.shape))
        return values, indices
