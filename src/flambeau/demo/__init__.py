"""``flambeau demo``: a NumPy function and the training of a small GPT, plain and compiled by turns. ``run.py`` is the whole story, ``arrays.py`` and
``training.py`` its parts, ``timing.py`` how they are timed, ``fused.py`` what the compiler made, ``report.py`` what is printed and drawn. The model
is ``flambeau.examples.gpt``."""
