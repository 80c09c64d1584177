"""The laboratory beside the library: the paper's experiments, and what the methods cost."""
