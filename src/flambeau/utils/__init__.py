import importlib


def __getattr__(name):
    """Submodules by attribute, as in PyTorch; imported at the first use."""
    if name.startswith("__"):
        raise AttributeError(name)
    try:
        return importlib.import_module(f"flambeau.utils.{name}")
    except ModuleNotFoundError as e:
        if e.name != f"flambeau.utils.{name}":
            raise
        raise AttributeError(f"module 'flambeau.utils' has no attribute '{name}'") from None
