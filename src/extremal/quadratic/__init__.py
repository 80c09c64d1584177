"""Small quadratic problems, without data and without counted oracle calls."""
