"""Steps on the factors of a matrix."""
