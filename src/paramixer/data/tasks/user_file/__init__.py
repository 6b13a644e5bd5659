"""A user's own files: tables, FASTA, arrays, and folders of texts, images or sounds by class."""

from paramixer.data.tasks.user_file.opened import LONGEST
from paramixer.data.tasks.user_file.user_file import TASKS, load

__all__ = ["LONGEST", "TASKS", "load"]
