"""Choices by measurement."""
