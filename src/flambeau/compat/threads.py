"""Number of threads of compiled kernels."""

from .. import _runtime

set_num_threads, get_num_threads = _runtime.set_num_threads, _runtime.get_num_threads
