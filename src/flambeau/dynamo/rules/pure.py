"""What is known of the standard library: which of its objects never change, and which of its functions are pure.

The tables go by names, so that no module is imported for them; that a function is the library's own and not another of its name is
checked where it is met. Classes are given with what tells two of their objects apart."""

from __future__ import annotations

import functools
import os
import sys
import types
from collections.abc import Callable
from typing import Any

from flambeau.base.installed import STDLIB

from .reflect import base_of, dict_of, flags_of, module_of, mro_of, name_of, qualname_of

__all__ = ["ASKED", "BREAKS", "PURE", "asked_method", "how", "is_plain", "value_key"]

# Functions of their arguments alone. zlib is left out: a call of it is a break, as PyTorch documents calls of C extensions.
PURE = {
    "_bisect": "bisect_left bisect_right",
    "_heapq": "",
    "_struct": "calcsize pack unpack unpack_from",
    "ast": "literal_eval",
    "base64": """a85decode a85encode b16decode b16encode b32decode b32encode b64decode b64encode b85decode b85encode standard_b64decode
        standard_b64encode urlsafe_b64decode urlsafe_b64encode""",
    "binascii": "a2b_base64 a2b_hex b2a_base64 b2a_hex crc32 crc_hqx hexlify unhexlify",
    "calendar": "isleap leapdays monthrange weekday",
    "collections": "",
    "colorsys": "hls_to_rgb hsv_to_rgb rgb_to_hls rgb_to_hsv rgb_to_yiq yiq_to_rgb",
    "difflib": "get_close_matches ndiff unified_diff context_diff",
    "fnmatch": "filter fnmatch fnmatchcase translate",
    "genericpath": "commonprefix",
    "heapq": "merge nlargest nsmallest",
    "html": "escape unescape",
    "inspect": "cleandoc",
    "json": "dumps loads",
    "ntpath": "basename dirname isabs join normcase normpath split splitdrive splitext",
    "posix": "_path_normpath _path_splitroot _path_splitroot_ex fspath",
    "posixpath": """_get_sep basename commonpath dirname isabs join normcase normpath split splitdrive splitext splitroot""",
    "pprint": "pformat",
    "re": "compile escape findall finditer fullmatch match search split sub subn",
    "shlex": "join quote split",
    "statistics": """fmean geometric_mean harmonic_mean mean median median_grouped median_high median_low mode multimode pstdev pvariance
        quantiles stdev variance""",
    "string": "capwords",
    "sys": "intern",
    "textwrap": "dedent fill indent shorten wrap",
    "unicodedata": "bidirectional category combining decimal digit is_normalized lookup name normalize numeric",
    "urllib.parse": """parse_qs parse_qsl quote quote_plus unquote unquote_plus urldefrag urlencode urljoin urlparse urlsplit urlunparse
        urlunsplit""",
}
# Functions of the state of the process or the machine: the guard asks them again.
ASKED = {
    "_locale": "getencoding",
    "_thread": "get_ident get_native_id",
    "genericpath": "exists getatime getctime getmtime getsize isdir isfile lexists",
    "locale": "getencoding getpreferredencoding",
    "os": "cpu_count getlogin process_cpu_count",
    "platform": """architecture machine node platform processor python_build python_compiler python_implementation python_version
        python_version_tuple release system version""",
    "posix": "access cpu_count getcwd getegid geteuid getgid getpid getppid getuid",
    "posixpath": "abspath exists expanduser expandvars isdir isfile islink ismount lexists realpath relpath",
    "shutil": "which",
    "sys": "getdefaultencoding getfilesystemencoding getrecursionlimit getsizeof getswitchinterval",
    "tempfile": "gettempdir gettempprefix",
    "threading": "active_count",
}
# Methods of objects that are asked again, and functions that return one object for one name.
ASKED_OF_OBJECTS = {"logging": "Logger.getEffectiveLevel Logger.hasHandlers Logger.isEnabledFor"}
SAME_OBJECT = {"logging": "getLogger"}
CLASS_MAKERS = {"collections": "namedtuple", "dataclasses": "make_dataclass", "typing": "NamedTuple"}
# Classes of the interpreter whose classmethods make constants of constants.
CONSTANT_CLASSES = (int, float, bytes, str, complex)

SAME = object()  # told apart by identity
_PATH = lambda v: (type(v), str(v))  # noqa: E731
_PATHS = ("PurePath", "PurePosixPath", "PureWindowsPath", "Path", "PosixPath", "WindowsPath")
# Immutable classes -> what tells their objects apart, a hashable of plain constants; SAME: only identity does.
VALUES: dict[tuple[str, str], Any] = {
    ("_struct", "Struct"): lambda v: v.format,
    ("datetime", "date"): lambda v: v.toordinal(),
    ("datetime", "datetime"): lambda v: (repr(v), v.fold),
    ("datetime", "time"): lambda v: (repr(v), v.fold),
    ("datetime", "timedelta"): lambda v: (v.days, v.seconds, v.microseconds),
    ("datetime", "timezone"): repr,
    ("decimal", "Decimal"): lambda v: v.as_tuple(),
    ("fractions", "Fraction"): lambda v: (v.numerator, v.denominator),
    ("re", "Match"): SAME,
    ("re", "Pattern"): lambda v: (v.pattern, v.flags),
    ("types", "GenericAlias"): SAME,
    ("types", "UnionType"): SAME,
    ("numpy", "finfo"): SAME,
    ("numpy", "iinfo"): lambda v: (v.dtype.char, v.dtype.str),
    ("uuid", "UUID"): lambda v: v.int,
    **{(module, "_PathParents"): SAME for module in ("pathlib", "pathlib._local")},
    **{(module, name): _PATH for module in ("pathlib", "pathlib._local") for name in _PATHS},
}
# What isn't a function of the object alone: read from the outside, or an effect. Paths: see asked_method.
BREAKS = {
    ("datetime", "date"): "fromtimestamp today",
    ("datetime", "datetime"): "astimezone fromtimestamp now today utcnow",
    ("_struct", "Struct"): "pack_into iter_unpack",
    ("re", "Pattern"): "scanner",
}
OF_THE_LOCALE = ("ctime", "strftime", "timestamp")
ASKED_OF_PATHS = frozenset(
    "absolute exists expanduser is_block_device is_char_device is_dir is_fifo is_file is_mount is_socket is_symlink resolve samefile".split()
)


TABLES = (
    (PURE, "pure"),
    (ASKED, "asked"),
    (ASKED_OF_OBJECTS, "asked of its object"),
    (SAME_OBJECT, "same object"),
    (CLASS_MAKERS, "makes a class"),
)


def is_library_code(code: types.CodeType) -> bool:
    """Whether it belongs to the interpreter's library, or NumPy."""
    return code.co_filename.startswith((STDLIB, "<")) or f"{os.sep}numpy{os.sep}" in code.co_filename


def how(fn) -> str | None:
    """What the tables above say of one of the library's own functions, else None."""
    if type(fn) is types.FunctionType:
        if not is_library_code(fn.__code__):
            return None
    elif not isinstance(fn, types.BuiltinFunctionType):
        return None
    owner = getattr(fn, "__self__", None)
    if isinstance(fn, types.BuiltinFunctionType) and fn.__qualname__ == "str.maketrans":  # bound to nothing
        return "pure"
    if isinstance(owner, type):
        pure = owner in CONSTANT_CLASSES or (value_class(owner) is not None and not _breaks(owner, fn.__name__))
        return "pure" if pure else None
    return _listed_as(module_of(fn), fn.__qualname__)


@functools.lru_cache(maxsize=1024)  # by name: a table of functions would keep a program's alive
def _listed_as(module: str, name: str) -> str | None:
    return next((found for table, found in TABLES if name in table.get(module, "").split()), None)


def value_class(cls: type):
    """The entry of :data:`VALUES` for the library's own class, else None."""
    if module_of(cls) == "typing" and name_of(cls).endswith(("GenericAlias", "SpecialForm")):
        return SAME
    if base_of(cls) is tuple and type(cls) is type and type(dict_of(cls).get("n_sequence_fields")) is int:
        if not dict_of(cls).get("__slots__") and module_of(cls).partition(".")[0] in sys.stdlib_module_names:
            return tuple  # sys.version_info and its kin
    found = VALUES.get((module_of(cls), qualname_of(cls)))
    if found is None or not flags_of(cls) & _HEAP:
        return found
    return found if getattr(sys.modules.get(module_of(cls)), qualname_of(cls), None) is cls else None


_HEAP = 1 << 9  # Py_TPFLAGS_HEAPTYPE: a program can make such classes


def value_key(value) -> Any:
    """What tells ``value`` from others of its class, SAME where identity does; None for what may change."""
    key = value_class(type(value))
    if key is None or key is SAME:
        return key
    if getattr(value, "tzinfo", None) is not None and value_class(type(value.tzinfo)) is None:
        return None  # a program's class says what time it is
    return key(value)


def _breaks(cls: type, name: str) -> bool:
    return name in BREAKS.get((module_of(cls), qualname_of(cls)), "").split()


def asked_method(cls: type, name: str) -> str | None:
    """How a method of an immutable class depends on the world: ``"pure"``, ``"asked"`` or None for an effect."""
    if module_of(cls).startswith("pathlib"):
        pure = any(name in vars(c) for c in mro_of(cls) if name_of(c).startswith("Pure"))
        return (
            "pure"
            if pure and name != "match" or name in ("match", "full_match")
            else ("asked" if name in ASKED_OF_PATHS else None)
        )
    return None if _breaks(cls, name) else "asked" if name in OF_THE_LOCALE and module_of(cls) == "datetime" else "pure"


def is_plain(value) -> bool:
    """Whether nothing of a program's own code can run when the library works on ``value``."""
    t = type(value)
    if t in (list, tuple, set, frozenset):
        return all(map(is_plain, value))
    if t is dict:
        return all(is_plain(k) and is_plain(v) for k, v in value.items())
    if t is type or isinstance(value, type):
        return module_of(value).split(".")[0] in sys.stdlib_module_names
    return t in CONSTANTS or (module_of(t) == "re" and name_of(t) == "RegexFlag") or value_class(t) is not None


CONSTANTS = frozenset((bool, int, float, complex, str, bytes, type(None), type(Ellipsis), range, slice))


@functools.lru_cache(maxsize=8)
def python_twin(module: str, accelerator: str) -> types.ModuleType:
    """A module of the library without its part in C: the same functions, in Python."""
    import importlib.util

    spec = importlib.util.find_spec(module)
    twin = importlib.util.module_from_spec(spec)
    before = sys.modules.get(accelerator)
    sys.modules[accelerator] = None
    try:
        spec.loader.exec_module(twin)
    finally:
        if before is None:
            del sys.modules[accelerator]
        else:
            sys.modules[accelerator] = before
    return twin


TWINS = {"_heapq": "heapq", "_bisect": "bisect"}


def in_python(fn) -> Callable | None:
    """The function in Python that a function in C stands for, where the library has both."""
    accelerator = module_of(fn)
    if accelerator not in TWINS or not isinstance(fn, types.BuiltinFunctionType):
        return None
    twin = getattr(python_twin(TWINS[accelerator], accelerator), fn.__name__, None)
    if twin is not None:
        twin.__module__ = accelerator  # programs see what they would see of the one in C
    return twin
