"""Continuous results: what each batch of a stream changed of its figures, and alerts."""
