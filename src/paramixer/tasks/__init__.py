"""The paper's tasks and the user's own files: raw data in, tensors out. A task knows no model."""

from paramixer.tasks.errors import DataError
from paramixer.tasks.registry import Definition, definitions, load
from paramixer.tasks.store import Item
from paramixer.tasks.task import Facts, Sequences, Task
from paramixer.tasks.vocabulary import Vocabulary

__all__ = ["DataError", "Definition", "Facts", "Item", "Sequences", "Task", "Vocabulary", "definitions", "load"]
