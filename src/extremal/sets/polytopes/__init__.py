"""Polytopes: by inequalities, by vertices, of graphs."""
