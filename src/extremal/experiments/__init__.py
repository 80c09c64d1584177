"""Runs over data sets: the demonstration so far."""
