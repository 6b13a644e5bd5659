"""``paramixer evaluate``."""

# No postponed annotations: the command line reads the types of the parameters.
from pathlib import Path
from typing import Literal


def evaluate(run: Path, /, *, split: Literal["validation", "test"] = "test", batch: int = 32) -> None:
    """Measure the model of a run again.

    Args:
        run: The run folder.
        split: The split to evaluate on.
        batch: Batch size.
    """
    from paramixer.cli.console import CommandConsole
    from paramixer.training.callbacks.progress import ConsoleDisplay
    from paramixer.training.distributed import build_accelerator
    from paramixer.training.runs.run import evaluate_run

    if batch < 1:
        raise ValueError(f"batch={batch}; it must be at least 1")
    console = CommandConsole(quiet=not build_accelerator().is_main_process)
    sequences, metrics, intervals = evaluate_run(run, split, batch=batch, display=ConsoleDisplay(console))
    numbers = []
    for name, value in metrics.items():
        low, high = intervals.get(name, (None, None))
        sure = "" if low is None else f" (95 % interval {low:.4f} to {high:.4f})"
        numbers.append(f"{name.replace('_', ' ')} {value:.4f}{sure}")
    console.print_line(f"{split}, {sequences} sequences: {', '.join(numbers)}")
