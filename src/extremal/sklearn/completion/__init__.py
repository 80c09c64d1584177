"""Matrix completion."""
