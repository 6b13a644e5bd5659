"""One benchmark from options to record: measure, write JSON and SVG, print the table."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from benchmarks import plot
from benchmarks.record import make_record, write_record
from benchmarks.record_tables import render_record
from benchmarks.settings import Settings
from paramixer.bench.device import use_device
from paramixer.bench.status import Notify, show_status
from paramixer.bench.timing import use_threads
from paramixer.machine import check_device, commit, serving_backend


def run(what: str, measure: Callable[[Any, Notify], dict[str, Any]], options: Settings, console: Console) -> Path:
    """Run one benchmark; returns the path of its record. Refuses a backend asked for by name that cannot serve."""
    check_device(options.device)
    try:
        serving_backend(torch.device(options.device))
    except RuntimeError as error:
        raise ValueError(str(error)) from error
    # Asked for now, so that the record names the code that ran and not what was committed meanwhile.
    commit()
    start = time.perf_counter()
    with use_threads(options.threads), use_device(options.device):
        with show_status(console) as notify:
            measured = measure(options, notify)
        record = make_record(what, options, measured, time.perf_counter() - start)
    path = write_record(record, options.out)
    plot.draw(record, path.with_suffix(".svg"))
    console.print(render_record(record))
    console.print(f"written: {path} and {path.with_suffix('.svg').name}", highlight=False, soft_wrap=True)
    return path
