"""What is asked of the probe: a JSON file that the environment names."""
import json
import os


class Request:
    """directory: where records go; steps: optimizer steps after which the program ends, 0 for none; world_size and
    rank: of the one rank that each process plays, world_size 0 where processes are what they are; gpus_per_node;
    inventory: whether the blocks that are alive at the peak are listed; snapshot: file for PyTorch's memory snapshot,
    "" for none; answers: {kind or "file.py:line": value} for reads of what a kernel would have written."""

    def __init__(self, fields):
        self.directory = fields["directory"]
        self.steps = fields.get("steps", 0)
        self.world_size = fields.get("world_size", 0)
        self.rank = fields.get("rank", 0)
        self.gpus_per_node = fields.get("gpus_per_node", 8)
        self.inventory = fields.get("inventory", False)
        self.snapshot = fields.get("snapshot", "")
        self.answers = fields.get("answers", {})

    @property
    def plays_rank(self):
        return self.world_size > 0

    @property
    def local_rank(self):
        return self.rank % self.gpus_per_node

    @property
    def local_world_size(self):
        return min(self.world_size, self.gpus_per_node)


def read():
    with open(os.environ["QLORA_PLAN_TRACE"], encoding="utf-8") as file:
        return Request(json.load(file))
