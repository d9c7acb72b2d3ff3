"""Environments that the examples learn in and gymnasium hasn't."""
