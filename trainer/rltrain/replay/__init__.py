"""Replay: columnar storage and prioritised sampling."""
