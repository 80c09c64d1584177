"""Weights that sum to one."""
