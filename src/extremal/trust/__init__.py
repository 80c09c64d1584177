"""Checks of answers that need no solver; import its modules by their names."""
