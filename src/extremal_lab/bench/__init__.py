"""The benchmarks: what the methods cost, as ratios that are measured side by side in one process on one thread."""
