"""Sets of matrices by their spectra."""
