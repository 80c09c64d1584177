"""Proximal steps by linear minimisations."""
