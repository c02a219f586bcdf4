"""Compiled graphs as plans: records, frame, files."""
