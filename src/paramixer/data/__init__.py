"""The paper's tasks and the user's own files: raw data in, tensors out. A task knows no model."""

from paramixer.data.errors import DataError
from paramixer.data.registry import Definition, definitions, load
from paramixer.data.storage.arrow import Item
from paramixer.data.task import Sequences, Task, TaskInfo
from paramixer.data.vocabulary import Vocabulary

__all__ = ["DataError", "Definition", "Item", "Sequences", "Task", "TaskInfo", "Vocabulary", "definitions", "load"]
