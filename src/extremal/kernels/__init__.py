"""Compiled code (numba). Imported on first use only: importing numba takes longer than all else."""
