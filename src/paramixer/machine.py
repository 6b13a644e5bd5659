"""What a record says about the machine and the code that it was made with."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import torch

from paramixer.ops import backends, cpu
from paramixer.ops.backends import ENGINES, serving

_LARGEST_CACHE = 2**29


def machine() -> dict[str, Any]:
    """Processor, cores, threads, the instruction set of the engine (or of torch without one), and versions."""
    return {
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "threads": torch.get_num_threads(),
        "instruction_set": cpu.instruction_set() or torch.backends.cpu.get_cpu_capability(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "torch": torch.__version__,
    }


def serving_engine() -> str:
    """The name of the engine that serves float32 tensors on the CPU now."""
    found = serving(torch.empty(0))
    return next(name for name, engine in ENGINES.items() if engine is found)


def engine_states() -> dict[str, str]:
    """Every engine, and whether it is there."""
    return {name: str(state) for name, state in backends().items()}


@cache
def commit() -> str | None:
    """The commit of this source tree, with "-dirty" where files were changed; None outside a checkout.

    As it was when first asked for: a run that asks when it begins is not told of what was committed meanwhile.
    """
    folder = Path(__file__).parent

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", "-C", str(folder), *arguments], check=True, capture_output=True, text=True
        ).stdout.strip()

    try:
        # An installed copy may lie within somebody else's repository.
        git("ls-files", "--error-unmatch", "__init__.py")
        return git("describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")
    except (OSError, subprocess.CalledProcessError):
        return None


def last_cache_bytes() -> int:
    """Size of the last-level cache; 0 where the system does not say."""
    path = Path("/sys/devices/system/cpu/cpu0/cache/index3/size")
    found = re.fullmatch(r"(\d+)([KM]?)", path.read_text().strip()) if path.is_file() else None
    if found is None:
        return 0
    return min(int(found[1]) * {"": 1, "K": 2**10, "M": 2**20}[found[2]], _LARGEST_CACHE)


def _cpu() -> str:
    path = Path("/proc/cpuinfo")
    found = re.search(r"^model name\s*:\s*(.+)$", path.read_text(), re.MULTILINE) if path.is_file() else None
    return found[1].strip() if found else platform.processor() or platform.machine()
