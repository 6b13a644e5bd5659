"""``paramixer bench``."""

# No postponed annotations: the command line reads the types of the parameters.
import dataclasses
from typing import Annotated, Literal

from cyclopts import Parameter

from paramixer.bench.shape import ChainShape
from paramixer.cli.flags import Switch


def bench(
    chain: Annotated[ChainShape | None, Parameter(name="*")] = None,
    *,
    only: list[str] | None = None,
    rounds: int = 5,
    threads: int | None = None,
    device: Literal["cpu", "cuda"] = "cpu",
    quick: Switch = False,
) -> None:
    """Time one chain on this machine with every implementation, after its result was verified.

    Args:
        chain: The shape of the chain.
        only: Measure this implementation beside paramixer, such as rolls; repeat it for several. By default all.
        rounds: Turns of every implementation; the medians are compared.
        threads: Threads of every implementation.
        device: What to measure, the processor or a GPU.
        quick: One round and small yardsticks, to see that everything works; its times mean nothing.
    """
    import torch

    from paramixer.bench import limits, rendering
    from paramixer.bench.case import Case
    from paramixer.bench.comparison import compare_implementations
    from paramixer.bench.device import use_device
    from paramixer.bench.implementations import check_names, default_names
    from paramixer.bench.status import show_status
    from paramixer.bench.timing import use_threads
    from paramixer.cli.console import CommandConsole
    from paramixer.machine import check_device, describe_machine, serving_backend

    for name, number in {"rounds": rounds, "threads": threads}.items():
        if number is not None and number < 1:
            raise ValueError(f"{name}={number}; it must be at least 1")
    case = Case(**dataclasses.asdict(chain or ChainShape()))
    check_names(only or ())
    # A backend that cannot serve is refused before anything is measured.
    check_device(device)
    serving_backend(torch.device(device))
    console = CommandConsole()
    with use_threads(threads), use_device(device):
        with show_status(console) as notify:
            machine_limits = limits.measure_limits(notify, quick)
            comparison = compare_implementations(
                case,
                only or default_names(case),
                limits=machine_limits,
                rounds=1 if quick else rounds,
                notify=notify,
                quick=quick,
            )
        machine = describe_machine()
        gpu = f"{torch.cuda.get_device_name()}, " if device == "cuda" else ""
    console.print(rendering.render(rendering.comparison_table(comparison)))
    console.print(
        f"{gpu}{machine['cpu']} ({machine['instruction_set']}), {machine['threads']} of {machine['cores']} cores, "
        f"torch {machine['torch']}; GEMM peak {machine_limits.flops / 1e9:.0f} GFLOP/s, memory "
        f"{machine_limits.bandwidth / 1e9:.1f} GB/s." + (" A quick run: its times mean nothing." if quick else ""),
        style="dim",
        highlight=False,
    )
