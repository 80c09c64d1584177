"""Tools for all packages: lazy imports, deadlines, decompositions, free memory."""
