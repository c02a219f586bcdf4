"""The assumptions of captured code: sources, the tree of guards, sizes that vary, the state of the process."""
