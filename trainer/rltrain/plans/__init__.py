"""Execution plans: each file reads like the diagram of its dataflow."""
