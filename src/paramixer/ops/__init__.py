"""link_mix, paramix and their MLP: one door, several engines."""

from paramixer.ops.door import link_mix, mlp, paramix
from paramixer.ops.engines import Availability, backend, backends

__all__ = ["Availability", "backend", "backends", "link_mix", "mlp", "paramix"]
