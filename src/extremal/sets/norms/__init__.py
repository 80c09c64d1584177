"""Balls of norms of vectors."""
