"""When training ends: steps, minutes, a goal that is reached, or no more improvement."""

from __future__ import annotations

from paramixer.training.assessment.metrics import METRICS
from paramixer.training.callback import Callback
from paramixer.training.distributed import any_process
from paramixer.training.loop import Loop
from paramixer.training.optimizer import cooling_end
from paramixer.training.options import parse_goal


class Stopping(Callback):
    """Ends training by the options ``steps``, ``epochs``, ``minutes``, ``until`` and ``patience``.

    Args:
        metric: how the task is judged.
    """

    def __init__(self, metric: str) -> None:
        self._metric = metric

    def stop_reason(self, loop: Loop) -> str | None:
        """Return the first limit that is reached."""
        progress, options = loop.progress, loop.options
        if loop.last_step is not None and progress.step >= loop.last_step:
            return "all steps are done"
        if options.minutes is not None and any_process(loop.seconds() > 60 * options.minutes, loop.accelerator):
            return f"{options.minutes:g} minutes are over"
        if options.until is not None and progress.best is not None:
            name, goal = parse_goal(options.until)
            if METRICS[self._metric].has_reached(progress.best, goal):
                return f"validation reached {name} = {progress.best:.4g}"
        if progress.cooling is not None and progress.step >= cooling_end(progress.cooling, options):
            many = "s" if (options.patience or 0) > 1 else ""
            return f"no improvement in {options.patience} evaluation{many}"
        return None
