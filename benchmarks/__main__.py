"""``python -m benchmarks``: measure, write records, and show them."""

# No postponed annotations: the command line reads the types.
import os
import sys
from pathlib import Path
from typing import Annotated

# The profiler's library writes a line to the terminal for each profile; read when torch is imported.
os.environ.setdefault("KINETO_LOG_LEVEL", "6")

from cyclopts import App, Parameter
from rich.console import Console

from benchmarks import block as block_benchmark
from benchmarks import gpu_kernels as kernels_benchmark
from benchmarks import memory as memory_benchmark
from benchmarks import models as models_benchmark
from benchmarks import scaling as scaling_benchmark
from benchmarks import step as step_benchmark
from benchmarks import targets
from benchmarks import training as training_benchmark
from benchmarks.block import BlockOptions
from benchmarks.gpu_kernels import KernelsOptions
from benchmarks.memory import MemoryOptions
from benchmarks.models import ModelsOptions
from benchmarks.record import read_record
from benchmarks.record_tables import insert, render_record
from benchmarks.run import run
from benchmarks.scaling import ScalingOptions
from benchmarks.step import StepOptions
from benchmarks.targets import TargetsOptions
from benchmarks.training import LoopOptions
from paramixer.cli.dispatch import run_app
from paramixer.files import replace_file

_FLAGS = Parameter(name="*")

app = App(
    name="python -m benchmarks",
    help="Speed, memory and scaling, written down as records in results/bench.",
    default_parameter=Parameter(negative=(), consume_multiple=True),
    help_format="plaintext",
    result_action="return_value",
    version_flags=[],
)


@app.command
def block(options: Annotated[BlockOptions, _FLAGS] = BlockOptions()) -> None:  # noqa: B008
    """Time every implementation of the same chain, forward and forward+backward."""
    run("block", block_benchmark.measure, options, Console())


@app.command
def scaling(options: Annotated[ScalingOptions, _FLAGS] = ScalingOptions()) -> None:  # noqa: B008
    """Measure the time per token from short to very long sequences."""
    run("scaling", scaling_benchmark.measure, options, Console())


@app.command
def memory(options: Annotated[MemoryOptions, _FLAGS] = MemoryOptions()) -> None:  # noqa: B008
    """Measure peak resident memory, each measurement in a fresh process."""
    run("memory", memory_benchmark.measure, options, Console())


@app.command
def step(options: Annotated[StepOptions, _FLAGS] = StepOptions()) -> None:  # noqa: B008
    """Time the whole training step of each preset, and split it by op."""
    run("step", step_benchmark.measure, options, Console())


@app.command
def training(options: Annotated[LoopOptions, _FLAGS] = LoopOptions()) -> None:  # noqa: B008
    """Measure how much of the training loop the model takes."""
    run("training", training_benchmark.measure, options, Console())


@app.command
def models(options: Annotated[ModelsOptions, _FLAGS] = ModelsOptions()) -> None:  # noqa: B008
    """Measure time and memory of every baseline's layer against a Paramixer block."""
    run("models", models_benchmark.measure, options, Console())


@app.command
def figures(options: Annotated[TargetsOptions, _FLAGS] = TargetsOptions()) -> None:  # noqa: B008
    """Measure every number that the CPU backend should reach, in one run."""
    run("figures", targets.measure, options, Console())


@app.command
def gpu_kernels(options: Annotated[KernelsOptions, _FLAGS] = KernelsOptions()) -> None:  # noqa: B008
    """Compile the Triton kernels for GPUs, without a GPU: registers, spills, shared memory, occupancy."""
    run("gpu-kernels", kernels_benchmark.measure, options, Console())


@app.command
def show(record: Path, *, into: Path | None = None) -> None:
    """Print the tables of a record, or put them into a page of the docs.

    Args:
        record: the JSON file that a benchmark wrote.
        into: a markdown page with the markers <!-- bench WHAT --> and <!-- end -->, to be updated.
    """
    console = Console()
    known = read_record(record)
    if into is None:
        console.print(render_record(known))
        return
    replace_file(into, insert(into.read_text(encoding="utf-8"), known).encode())
    console.print(f"updated {into} from {record}", highlight=False, soft_wrap=True)


def main(words: list[str] | None = None) -> int:
    """Run a command. Returns 0, or 2 for a mistake of the caller, which is printed in one line, or 130 after Ctrl-C."""
    return run_app(app, "benchmarks", words)


if __name__ == "__main__":
    sys.exit(main())
