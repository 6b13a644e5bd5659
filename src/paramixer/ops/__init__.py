"""link_mix and paramix: one door, several engines."""

from paramixer.ops.door import link_mix, paramix
from paramixer.ops.engines import Availability, backend, backends

__all__ = ["Availability", "backend", "backends", "link_mix", "paramix"]
