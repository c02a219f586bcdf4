"""``flambeau demo``: train a small GPT eagerly and compiled, and compare. ``run.py`` is the whole story, ``text.py`` the data,
``report.py`` what is printed and drawn. The model is ``flambeau.examples.gpt``."""
