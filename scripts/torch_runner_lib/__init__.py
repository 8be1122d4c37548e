"""The parts of scripts/torch_runner.py."""
