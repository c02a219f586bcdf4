"""Tools that look at compiled programs from outside.

``compare`` tells whether two results agree, ``minify`` makes a failing graph small, ``scripts`` writes a graph as a program that runs alone,
``repro`` joins them behind TORCHDYNAMO_REPRO_AFTER and TORCHDYNAMO_REPRO_LEVEL, ``verify`` runs every compiled graph beside the plain one.
Nothing here is imported unless a program asks for it.
"""
