"""``torch.ao.quantization``: observers, fake quantisation, and the eager flows of PyTorch (static, dynamic, in training).

``quantize_`` with ``Int8WeightOnlyConfig`` and ``Int4WeightOnlyConfig`` (torchao's names) leaves activations as they are.
"""

from flambeau.ao.quantization import (
    fake_quantize,
    observer,
    qconfig,
    qconfig_mapping,
    quantization_mappings,
    stubs,
)
from flambeau.ao.quantization import (
    fuse_modules as _fuse,
)
from flambeau.ao.quantization import (
    quantize as _quantize,
)
from flambeau.ao.quantization.fake_quantize import *  # noqa: F403
from flambeau.ao.quantization.fuse_modules import *  # noqa: F403
from flambeau.ao.quantization.observer import *  # noqa: F403
from flambeau.ao.quantization.qconfig import *  # noqa: F403
from flambeau.ao.quantization.qconfig_mapping import *  # noqa: F403
from flambeau.ao.quantization.quantization_mappings import *  # noqa: F403
from flambeau.ao.quantization.quantize import *  # noqa: F403
from flambeau.ao.quantization.stubs import *  # noqa: F403
from flambeau.nn.weight_only import Int4WeightOnlyConfig, Int8WeightOnlyConfig, quantize_

__all__ = ["Int4WeightOnlyConfig", "Int8WeightOnlyConfig", "quantize_"]
for _module in (fake_quantize, _fuse, observer, qconfig, qconfig_mapping, quantization_mappings, _quantize, stubs):
    __all__ += _module.__all__
