"""Genome: which organism is a stretch of DNA from?"""

from paramixer.data.tasks.genome.genome import TASKS, load
from paramixer.data.tasks.genome.kmers import score_kmers

__all__ = ["TASKS", "load", "score_kmers"]
