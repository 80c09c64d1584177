"""Newton steps: over coordinate vertices, between bounds, over atoms."""
