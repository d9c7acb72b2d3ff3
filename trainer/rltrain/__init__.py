"""Reinforcement-learning training for Kubernetes, from one manifest."""
