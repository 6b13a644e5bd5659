"""link_mix, paramix and their MLP: one door, several engines."""

from paramixer.ops.backends import Availability, backend, backends
from paramixer.ops.functional import link_mix, mlp, paramix

__all__ = ["Availability", "backend", "backends", "link_mix", "mlp", "paramix"]
