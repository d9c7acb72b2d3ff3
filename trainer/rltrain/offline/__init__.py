"""Offline data: recorded transitions, read, checked and written."""
