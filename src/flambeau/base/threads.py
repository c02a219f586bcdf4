"""Number of threads of compiled kernels and of matrix products, eager ones too."""

from .. import _runtime
from .blas import share_threads

share_threads()
set_num_threads, get_num_threads = _runtime.set_num_threads, _runtime.get_num_threads
