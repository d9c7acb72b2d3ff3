"""Policies: losses, targets, exploration and their optimizers."""
