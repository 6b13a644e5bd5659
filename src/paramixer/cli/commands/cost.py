"""``paramixer cost``."""

# No postponed annotations: the command line reads the types of the parameters.
import dataclasses
from typing import Annotated, Literal

from cyclopts import Parameter

from paramixer.bench.shape import ChainShape
from paramixer.cli.flags import Switch


def cost(
    chain: Annotated[ChainShape | None, Parameter(name="*")] = None,
    *,
    checkpoint_every: int = 1,
    backend: str | None = None,
    device: Literal["a100", "h100"] | None = None,
    gflops: float | None = None,
    bandwidth: float | None = None,
    measure: Switch = False,
    threads: int | None = None,
) -> None:
    """Predict operations, bytes, time and memory of a chain without running it.

    Args:
        chain: The shape of the chain.
        checkpoint_every: Training keeps the input of every such factor and recomputes the others.
        backend: Predict for this backend, cpu, triton or reference. By default the one that serves here.
        device: Predict for this GPU, from the limits in its data sheet, and for the backend triton.
        gflops: The machine's GEMM peak in GFLOP/s. By default 138, two cores with AVX2.
        bandwidth: The machine's memory bandwidth in GB/s. By default 20.
        measure: Measure the limits of this machine first, for a better prediction of the time.
        threads: Threads of that measurement.
    """
    from paramixer.bench import limits, rendering
    from paramixer.bench.case import Case
    from paramixer.bench.cost import describe
    from paramixer.bench.status import show_status
    from paramixer.bench.timing import use_threads
    from paramixer.cli.console import CommandConsole
    from paramixer.machine import serving_backend

    numbers = {"checkpoint_every": checkpoint_every, "gflops": gflops, "bandwidth": bandwidth, "threads": threads}
    for name, number in numbers.items():
        if number is not None and number <= 0:
            raise ValueError(f"{name}={number}; it must be positive")
    case = Case(**dataclasses.asdict(chain or ChainShape()))
    console = CommandConsole()
    if device and measure:
        raise ValueError(f"--measure measures this machine and --device={device} is another one; leave one of them out")
    machine = limits.DEVICES[device] if device else limits.DEFAULT
    if measure:
        with use_threads(threads), show_status(console) as notify:
            machine = limits.measure_limits(notify)
    machine = limits.Limits(
        flops=1e9 * gflops if gflops else machine.flops,
        bandwidth=1e9 * bandwidth if bandwidth else machine.bandwidth,
        cache=machine.cache,
    )
    prediction = describe(case, backend or ("triton" if device else serving_backend()), machine, checkpoint_every)
    console.print(rendering.render(rendering.cost_table(prediction)))
    console.print(
        f"Times for a GEMM peak of {machine.flops / 1e9:.0f} GFLOP/s and {machine.bandwidth / 1e9:.1f} GB/s to memory; "
        "memory beyond the process's own."
        + (" No GPU has measured this yet." if (backend or device) in ("triton", device) and device else ""),
        style="dim",
        highlight=False,
    )
