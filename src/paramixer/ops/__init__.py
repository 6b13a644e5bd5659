"""The operators link_mix, paramix and mlp: one API, several backends."""

from paramixer.ops.backends import Availability, backend, backends
from paramixer.ops.cpu import release_memory
from paramixer.ops.functional import link_mix, mlp, paramix

__all__ = ["Availability", "backend", "backends", "link_mix", "mlp", "paramix", "release_memory"]
