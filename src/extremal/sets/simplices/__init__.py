"""Simplices, boxes and chains."""
