"""Polytopes: given by inequalities, given by vertices, and polytopes of graphs."""
