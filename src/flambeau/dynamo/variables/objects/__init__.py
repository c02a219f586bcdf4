"""Objects and classes of the program: attributes, identity, type checks, namespaces."""
