"""Agents: see ``server.api``."""
