"""Directories of shards: rows on disk as plain .npy files, and a manifest that describes them."""
