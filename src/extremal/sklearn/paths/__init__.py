"""Paths over radii."""
