"""How to measure: the settings that all benchmarks share."""

# No postponed annotations here: the command line reads the fields' types where they are inherited, in other modules.
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How to measure."""

    threads: int | None = None
    """Threads for everything; None for torch's default."""
    rounds: int = 5
    """Turns that every way gets; the medians are compared."""
    quick: bool = False
    """Tiny sizes and one round, to see that everything works. Its times mean nothing."""
    out: Path = Path("results/bench")
    """Folder for the JSON record and the plot."""

    def __post_init__(self) -> None:
        for name in ("threads", "rounds"):
            count = getattr(self, name)
            if count is not None and count < 1:
                raise ValueError(f"{name}={count}; it must be at least 1")

    @property
    def turns(self) -> int:
        """The rounds, or one where it is to be quick."""
        return 1 if self.quick else self.rounds


@contextmanager
def threads(count: int | None) -> Iterator[None]:
    """So many threads within the block, and as many as before after it; None changes nothing."""
    before = torch.get_num_threads()
    torch.set_num_threads(count or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)
