"""Modes that are on at a call or entered inside: function modes, default devices, autocast."""
