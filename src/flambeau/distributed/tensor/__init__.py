"""``torch.distributed.tensor``: tensors spread over the ranks of a mesh. See docs/design/distributed.md."""

from ..device_mesh import DeviceMesh, init_device_mesh
from ._api import DTensor, distribute_module, distribute_tensor, empty, full, ones, rand, randn, zeros
from .placement_types import DTensorSpec, Partial, Placement, Replicate, Shard

__all__ = [
    "DTensor",
    "DTensorSpec",
    "DeviceMesh",
    "Partial",
    "Placement",
    "Replicate",
    "Shard",
    "distribute_module",
    "distribute_tensor",
    "empty",
    "full",
    "init_device_mesh",
    "ones",
    "rand",
    "randn",
    "zeros",
]
