"""Checkpoints of runs: files from which the same call goes on, bit for bit."""
