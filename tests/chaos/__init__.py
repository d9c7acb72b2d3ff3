"""Faults on a running cluster, each alone and then at random, and what became of three jobs that trained meanwhile."""
