"""Environments, their stepping as vectors, and the batches that come of it."""
