"""What programs of elastic jobs use: see ``data``."""
