"""The machine and the source version, as records store them."""

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
from paramixer.ops.backends import BACKENDS, select_backend

# Some virtual machines report absurd cache sizes.
_LARGEST_CACHE = 2**29


def describe_machine() -> dict[str, Any]:
    """Return processor, cores, threads, instruction set (of the CPU backend, else of torch) and versions."""
    return {
        "cpu": _read_processor_name(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "threads": torch.get_num_threads(),
        "instruction_set": cpu.instruction_set() or torch.backends.cpu.get_cpu_capability(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "torch": torch.__version__,
    }


def serving_backend(device: torch.device | None = None) -> str:
    """Return the name of the backend that serves float32 tensors on a device now, by default on the CPU."""
    selected = select_backend(torch.empty(0, device=device or "cpu"))
    return next(name for name, backend in BACKENDS.items() if backend is selected)


def check_device(name: str) -> None:
    """Refuse a device that torch does not have, and say what is missing."""
    if name not in ("cpu", "cuda"):
        raise ValueError(f"device={name!r}; choose from cpu, cuda")
    if name == "cuda" and not torch.cuda.is_available():
        built = torch.version.cuda or torch.version.hip
        missing = "finds no GPU" if built else "is a build for CPUs only"
        raise ValueError(f"device='cuda': torch {torch.__version__} {missing}; choose --device cpu, or run it on a GPU")


def describe_backends() -> dict[str, str]:
    """Return every backend with its availability."""
    return {name: str(availability) for name, availability in backends().items()}


@cache
def commit() -> str | None:
    """Return the commit of this source tree, with "-dirty" if files were changed; None outside a checkout.

    The first answer is cached: a run that calls this when it starts is not affected by later commits.
    """
    folder = Path(__file__).parent

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", "-C", str(folder), *arguments], check=True, capture_output=True, text=True
        ).stdout.strip()

    try:
        # An installed copy may lie within another repository.
        git("ls-files", "--error-unmatch", "__init__.py")
        return git("describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")
    except (OSError, subprocess.CalledProcessError):
        return None


def last_cache_bytes() -> int:
    """Return the size of the last-level cache; 0 if the system does not tell it."""
    path = Path("/sys/devices/system/cpu/cpu0/cache/index3/size")
    size = re.fullmatch(r"(\d+)([KM]?)", path.read_text().strip()) if path.is_file() else None
    if size is None:
        return 0
    return min(int(size[1]) * {"": 1, "K": 2**10, "M": 2**20}[size[2]], _LARGEST_CACHE)


def _read_processor_name() -> str:
    path = Path("/proc/cpuinfo")
    name = re.search(r"^model name\s*:\s*(.+)$", path.read_text(), re.MULTILINE) if path.is_file() else None
    return name[1].strip() if name else platform.processor() or platform.machine()
