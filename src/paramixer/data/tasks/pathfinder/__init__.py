"""Pathfinder: does a dashed path join two marked ends?"""

from paramixer.data.tasks.pathfinder.task import TASKS, load

__all__ = ["TASKS", "load"]
