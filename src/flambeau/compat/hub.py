"""``torch.hub`` from local folders, and checkpoints by URL with a cache and a hash."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import importlib.util
import os
import re
import sys
import tempfile
import urllib.parse
import urllib.request
from pathlib import Path
from urllib.error import HTTPError, URLError  # noqa: F401  (libraries take them from here)
from urllib.parse import urlparse  # noqa: F401
from urllib.request import Request, urlopen  # noqa: F401

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]

try:
    from tqdm import tqdm  # what libraries take from here
except ImportError:

    class tqdm:  # noqa: N801
        """An iterable without a bar, where tqdm isn't installed."""

        def __init__(self, iterable=None, *args, **kwargs):
            self.iterable = iterable

        def __iter__(self):
            return iter(self.iterable)

        def update(self, n=1):
            """Nothing is shown."""

        def close(self):
            """Nothing is shown."""

        def __enter__(self):
            return self

        def __exit__(self, *exc):
            return False


HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
_dir: str | None = None


def get_dir() -> str:
    """Folder of repositories and checkpoints: ``set_dir``'s, else $TORCH_HOME/hub, else ~/.cache/torch/hub."""
    if _dir is not None:
        return _dir
    return os.path.join(_get_torch_home(), "hub")


def _get_torch_home() -> str:
    """$TORCH_HOME, else the cache folder of the user."""
    home = os.environ.get("TORCH_HOME")
    return os.path.expanduser(home or os.path.join(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "torch"))


def set_dir(d) -> None:
    """Keep repositories and files below ``d`` from now on. See :func:`get_dir` for the folder unless it is set."""
    global _dir
    _dir = os.path.expanduser(str(d))


_REPOSITORY = re.compile(r"([A-Za-z0-9-]+)/([A-Za-z0-9._-]+)(?::([A-Za-z0-9._/-]+))?")


def _checkouts(repository: str) -> list[Path]:
    """Where a checkout of "owner/name" or "owner/name:branch" lies; without a branch it is main or master. ValueError for another form. An owner's
    name has no underscore, so no other owner's repository can have such a folder."""
    found = _REPOSITORY.fullmatch(repository)
    if found is None or found[2] in (".", ".."):
        raise ValueError(f"torch.hub: expected a repository as 'owner/name[:branch]', got {repository!r}")
    owner, name, branch = found.groups()
    branches = [branch.replace("/", "_")] if branch else ["main", "master"]
    return [Path(get_dir(), f"{owner}_{name}_{b}") for b in branches]


def _folder(repository, source: str) -> Path:
    """Where the repository's ``hubconf.py`` lies. FileNotFoundError or RuntimeError where there is none."""
    if source not in ("github", "local"):
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    if source == "github":
        found = next((p for p in _checkouts(str(repository)) if (p / "hubconf.py").exists()), None)
        if found is None:
            raise RuntimeError(
                f"torch.hub: {repository} is not in {get_dir()}; flambeau loads repositories from local folders only: clone it and use "
                f"torch.hub.load(folder, ..., source='local')"
            )
        return found
    path = Path(os.path.abspath(os.path.expanduser(repository)))
    if not (path / "hubconf.py").exists():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path / "hubconf.py"))
    return path


@contextlib.contextmanager
def _repository(repository, source: str):
    """The module ``hubconf``. Inside the block the repository's other modules can be imported, as entry points do when they are called."""
    path = _folder(repository, source)
    sys.path.insert(0, str(path))
    try:
        spec = importlib.util.spec_from_file_location("hubconf.py", path / "hubconf.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        missing = [name for name in getattr(module, "dependencies", None) or () if _absent(name)]
        if missing:
            raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
        yield module
    finally:
        with contextlib.suppress(ValueError):  # the repository's code may have removed it
            sys.path.remove(str(path))


def _absent(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is None
    except ModuleNotFoundError:  # what it lies in
        return True


def _entry(module, name: str):
    if not isinstance(name, str):
        raise ValueError("Invalid input: model should be a string of function name")
    fn = getattr(module, name, None)
    if not callable(fn):
        raise RuntimeError(f"Cannot find callable {name} in hubconf")
    return fn


def list(github, force_reload=False, skip_validation=False, trust_repo=None, verbose=True, *, source="github"):  # noqa: A001
    """Names of the entry points."""
    with _repository(github, source) as module:
        return [n for n, v in vars(module).items() if callable(v) and not n.startswith("_")]


def help(github, model, force_reload=False, skip_validation=False, trust_repo=None, *, source="github"):  # noqa: A001
    """Docstring of an entry point."""
    with _repository(github, source) as module:
        return _entry(module, model).__doc__


def load(
    repo_or_dir,
    model,
    *args,
    source="github",
    trust_repo=None,
    force_reload=False,
    verbose=True,
    skip_validation=False,
    **kwargs,
):
    """Call the entry point ``model`` of the ``hubconf.py`` in a folder (``source="local"``)."""
    with _repository(repo_or_dir, source) as module:
        return _entry(module, model)(*args, **kwargs)


def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None, progress: bool = True) -> None:
    """Download to ``dst`` by way of a temporary file beside it. RuntimeError when the SHA-256 doesn't begin with ``hash_prefix``."""
    dst = os.path.expanduser(dst)
    digest = hashlib.sha256()
    handle = tempfile.NamedTemporaryFile(delete=False, dir=os.path.dirname(os.path.abspath(dst)))  # noqa: SIM115
    try:
        with (
            handle,
            urllib.request.urlopen(urllib.request.Request(url, headers={"User-Agent": "flambeau.hub"})) as source,
        ):
            while block := source.read(1 << 17):
                handle.write(block)
                digest.update(block)
        if hash_prefix is not None and not digest.hexdigest().startswith(hash_prefix):
            raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{digest.hexdigest()}")')
        os.replace(handle.name, dst)
    finally:
        Path(handle.name).unlink(missing_ok=True)


def load_state_dict_from_url(
    url, model_dir=None, map_location=None, progress=True, check_hash=False, file_name=None, weights_only=True
):
    """The checkpoint at ``url``, from the cache when it has been loaded before."""
    from ..serialization import load as load_file

    model_dir = model_dir or os.path.join(get_dir(), "checkpoints")
    os.makedirs(model_dir, exist_ok=True)
    name = file_name or os.path.basename(urllib.parse.urlparse(url).path)
    cached = os.path.join(model_dir, name)
    if not os.path.exists(cached):
        found = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, cached, found[1] if found else None, progress)
    return load_file(cached, map_location=map_location, weights_only=weights_only)


load_url = load_state_dict_from_url
