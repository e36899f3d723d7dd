"""The tests, in the folders of what they test; oracles and tools of fault are in `support`."""
