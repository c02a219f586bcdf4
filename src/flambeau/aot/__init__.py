"""Ahead-of-time autograd: captured functions as functional ATen graphs, forward and backward.

Enter at api.py; tracing.py makes the joint graph and its facts (facts.py), partitioners.py cuts it,
compiled_function.py and runtime.py are what runs at a call. The graphs handed to compilers are flat and functional,
with ``meta["val"]`` on every node."""

from .api import aot_function as aot_function
from .api import aot_module as aot_module
from .api import aot_module_simplified as aot_module_simplified
from .api import nop as nop
from .backends import aot_autograd as aot_autograd
from .backends import aot_eager as aot_eager
from .backends import make_boxed_compiler as make_boxed_compiler
from .backends import make_boxed_func as make_boxed_func
from .partitioners import default_partition as default_partition
from .partitioners import min_cut_rematerialization_partition as min_cut_rematerialization_partition
from .settings import config as config
