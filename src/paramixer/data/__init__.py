"""The paper's tasks and user files: raw data in, tensors out. Nothing here knows a model."""

from paramixer.data.definition import Definition
from paramixer.data.errors import DataError
from paramixer.data.registry import definitions, load
from paramixer.data.samples import Item
from paramixer.data.task import Sequences, Task, TaskInfo
from paramixer.data.vocabulary import Vocabulary

__all__ = ["DataError", "Definition", "Item", "Sequences", "Task", "TaskInfo", "Vocabulary", "definitions", "load"]
