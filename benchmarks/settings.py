"""The settings that all benchmarks share."""

# No postponed annotations: the command line reads the fields' types where they are inherited, in other modules.
from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How to measure."""

    threads: int | None = None
    """Threads for everything; torch's default if not given."""
    rounds: int = 5
    """Turns of every implementation; the medians are compared."""
    device: Literal["cpu", "cuda"] = "cpu"
    """What to measure, the processor or a GPU."""
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
        """The rounds, or one for a quick run."""
        return 1 if self.quick else self.rounds
