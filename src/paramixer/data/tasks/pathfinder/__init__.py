"""Pathfinder: does a dashed path join two marked ends?"""

from paramixer.data.tasks.pathfinder.pathfinder import TASKS, load

__all__ = ["TASKS", "load"]
