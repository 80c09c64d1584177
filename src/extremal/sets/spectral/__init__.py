"""Sets of matrices defined by their spectra."""
