"""``torch.cuda`` on a machine without it: programs may ask."""


def is_available() -> bool:
    return False


def device_count() -> int:
    return 0


def is_initialized() -> bool:
    return False


def synchronize(device=None):
    raise AssertionError("Torch not compiled with CUDA enabled")


def manual_seed(seed) -> None:
    """Nothing to seed."""


manual_seed_all = manual_seed
