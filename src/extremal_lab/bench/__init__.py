"""Benchmarks: the cost of the methods, as ratios that are measured side by side in one process on one thread."""
