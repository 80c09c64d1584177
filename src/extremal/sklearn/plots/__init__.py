"""Plots of fits."""
