"""Comparisons of anyone's methods: problems and methods as users write them, metrics, and results that can be merged."""
