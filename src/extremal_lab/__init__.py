"""The laboratory beside the library: the paper's experiments, and benchmarks of the methods."""
