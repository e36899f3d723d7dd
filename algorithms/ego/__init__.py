"""Structural diversity: how many social contexts the neighbours of each vertex form."""
