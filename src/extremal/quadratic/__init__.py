"""Small quadratic problems: no data, no oracle that counts."""
