"""Genome: which organism is a stretch of DNA from?"""

from paramixer.data.tasks.genome.task import TASKS, kmer_baseline, load

__all__ = ["TASKS", "kmer_baseline", "load"]
