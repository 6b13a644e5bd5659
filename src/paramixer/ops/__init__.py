"""The operators link_mix, paramix, mlp and those of n-gram tables: one API, several backends."""

from paramixer.ops.backends import Availability, backend, backends
from paramixer.ops.cpu import release_memory
from paramixer.ops.functional import link_mix, mlp, paramix
from paramixer.ops.ngram_layout import NgramLayout
from paramixer.ops.ngrams import count_ngrams

__all__ = [
    "Availability",
    "NgramLayout",
    "backend",
    "backends",
    "count_ngrams",
    "link_mix",
    "mlp",
    "paramix",
    "release_memory",
]
