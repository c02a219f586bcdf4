"""Parts of ``nn.functional`` by idea; ``functional.py`` puts them under one name."""
