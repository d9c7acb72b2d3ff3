"""Environments that each bring out one kind of mistake."""
