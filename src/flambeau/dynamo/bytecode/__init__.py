"""Bytecode: the table of instructions of each CPython version, decoding, writing captured code, and its continuations behind a graph break."""
