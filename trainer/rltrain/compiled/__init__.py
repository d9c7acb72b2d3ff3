"""Tensor functions as native code: compiled ahead of time, in a process of its own, and kept on disk."""
