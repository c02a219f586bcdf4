"""Context managers."""
