"""Checks of answers that need no solver."""
