"""``paramixer reproduce``: a table or figure of the paper, from its runs to its picture."""

# No postponed annotations here: the command line reads the fields' types.
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from rich.console import Console

from paramixer.bench.tables import Table, render
from paramixer.data import registry
from paramixer.data.task import Task
from paramixer.nn.model import Paramixer
from paramixer.files import replace_file
from experiments import figures, paper_tables, rank, stand_ins
from experiments.cells import CDIL, CHORD, EXPERIMENTS, Cell, Scale, Sources, changed, key
from experiments.page import GENOMES, page
from experiments.records import Kept, read_all
from experiments.sweep import Sweep

_LRA = ("listops", "text", "image", "pathfinder")
_FILES = ("image", "text", "documents", "genome", "hfdna", "mtcdna")
# The data without which some cells are left out; without all of it a table has none.
_DATA: dict[str, tuple[str, ...]] = defaultdict(
    tuple, {"table-lra": ("image", "text"), "figure-lengths": _FILES[1:4], "all": _FILES[:4]}
)


@dataclass(frozen=True)
class ReproduceOptions:
    """A table or figure of the paper: its runs, their records, and the finished table with the paper's numbers."""

    name: Literal[
        "figure-synthetic",
        "table-lra",
        "table-documents",
        "table-genome",
        "table-links",
        "figure-rank",
        "figure-lengths",
        "figure-protocols",
        "figure-network",
        "figure-examples",
        "page",
        "all",
    ]
    """Which one; page only writes the page of results from the records there are."""
    scale: Scale = "smoke"
    """smoke proves the pipe, cpu is bounded minutes on two cores, paper is the paper's settings."""
    minutes: float | None = None
    """Stop after so many; what is under way is saved, and goes on next time."""
    shard: str = "1/1"
    """Which share of the runs, as i/n, to split them over n machines; copy the records together afterwards."""
    only: str | None = None
    """Only cells whose model and column hold this text, in small letters or capitals."""
    seeds: int | None = None
    """How many seeds each cell is run with; None for 1, and 4 at the paper's scale."""
    image: Path | None = None
    """CIFAR-10; None to look for it in the folder of PARAMIXER_DATA."""
    text: Path | None = None
    """The IMDB reviews; None as above."""
    documents: Path | None = None
    """arXiv papers; None as above."""
    genome: Path | None = None
    """A folder of FASTA files, one a class, for scale cpu; None as above."""
    hfdna: Path | None = None
    """The paper's human and fruit fly transcripts likewise, for scale paper; None as above."""
    mtcdna: Path | None = None
    """The paper's mouse and turtle cDNAs likewise, for scale paper; None as above."""
    results: Path = Path("results")
    """Where records are kept; those of scale smoke in a folder smoke in it, apart from what was measured. Runs that
    have a record here are not made again, on whatever data: give a folder of your own to make them all yourself."""
    runs: Path = Path("runs/reproduce")
    """Where run folders are; those of finished runs can be thrown away."""
    docs: Path | None = None
    """The folder of results.md, to be written anew; None to leave it alone."""

    def __post_init__(self) -> None:
        self.part()
        for name in ("minutes", "seeds"):
            number = getattr(self, name)
            if number is not None and number <= 0:
                raise ValueError(f"{name}={number}; it must be positive")
        if self.name == "page" and self.docs is None:
            raise ValueError("say where to write the page, such as --docs docs")

    def part(self) -> tuple[int, int]:
        """i and n of the shard."""
        first, _, last = self.shard.partition("/")
        if not (first.isdecimal() and last.isdecimal() and 1 <= int(first) <= int(last)):
            raise ValueError(f"shard={self.shard!r}; write i/n with 1 <= i <= n, such as 2/4")
        return int(first), int(last)

    def sources(self) -> Sources:
        """Where the data is, as told or as found; at the smallest scale tiny files stand in for it."""
        if self.scale == "smoke":
            return stand_ins.sources(self.runs / "stand-ins")
        told = {name: getattr(self, name) for name in _FILES}
        for name, path in told.items():
            if path is not None and not path.exists():
                raise FileNotFoundError(f"--{name} {path} does not exist")
        return Sources(**{name: path or registry.find_local(name) for name, path in told.items()})

    def records(self) -> Path:
        """Where this scale's records are kept."""
        return self.results / "smoke" if self.scale == "smoke" else self.results

    def experiment(self, name: str) -> list[Cell]:
        """All cells of an experiment, one seed after the other."""
        cells = list(EXPERIMENTS[name](self.scale, self.sources()))
        if self.seeds is None:
            return cells
        first = [cell for cell in cells if cell.options.seed == 0]
        return [
            replace(cell, options=changed(cell.options, {"seed": seed})) for seed in range(self.seeds) for cell in first
        ]

    def cells(self) -> list[Cell]:
        """This shard's cells of the experiments asked for."""
        every = [cell for name in EXPERIMENTS if self.name in (name, "all") for cell in self.experiment(name)]
        if self.name in EXPERIMENTS and not every:
            raise ValueError(
                f"{self.name}: no cell to run; is its data there? give it with a flag, or in PARAMIXER_DATA"
            )
        wanted = [cell for cell in every if (self.only or "").lower() in f"{cell.row} {cell.column}".lower()]
        if every and not wanted:
            names = ", ".join(dict.fromkeys(f"{cell.row} {cell.column}" for cell in every))
            raise ValueError(f"no cell of {self.name} holds {self.only!r}; there are {names}")
        number, of = self.part()
        return wanted[number - 1 :: of]


def reproduce(options: ReproduceOptions, console: Console) -> int:
    """``paramixer reproduce``; returns how many cells are done."""
    done = 0
    cells = options.cells()
    records = options.records()
    failed: list[str] = []
    absent = [name for name in _DATA[options.name] if getattr(options.sources(), name) is None]
    if absent:
        console.print(
            f"left out for want of data: {', '.join(absent)}; give it with a flag, or in PARAMIXER_DATA",
            highlight=False,
        )
    if cells:
        sweep = Sweep(cells, records, options.runs, console, options.minutes)
        done = sweep.run()
        failed = sweep.failed
    if options.name in (rank.NAME, "all"):
        compared = options.experiment(rank.NAME)
        if rank.compare(compared, records, options.runs) is None:
            console.print(
                f"singular values are not measured anew: {options.runs} does not hold all models of {rank.NAME}; "
                f"delete their records in {records / rank.NAME} to train them again",
                highlight=False,
            )
    pictures = options.docs / "results" if options.docs else records / "figures"
    # What stand-ins show is no picture of the data.
    of_data = records / "figures" if options.scale == "smoke" else pictures
    if options.name in ("figure-protocols", "all"):
        figures.protocols(pictures / "links.svg")
        console.print(f"drawn: {pictures / 'links.svg'}", highlight=False)
    if options.name in ("figure-network", "all"):
        figures.network(pictures / "network.svg")
        console.print(f"drawn: {pictures / 'network.svg'}", highlight=False)
    if options.name in ("figure-examples", "all"):
        _examples(options, of_data / "examples.png", console)
    if options.name in ("figure-lengths", "all"):
        longest = 512 if options.scale == "smoke" else None
        for path in figures.lengths(options.sources(), records, of_data, longest):
            console.print(f"written: {path}", highlight=False)
    kept = [one for one in read_all(records) if one.scale == options.scale]
    for table in _finished(options.name, kept):
        console.print(render(table))
    if options.docs is not None:
        path = options.docs / "results.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, page(options.results, options.docs / "results").encode())
        console.print(f"written: {path}", highlight=False)
    if failed:
        raise ValueError(f"{len(failed)} of {len(cells)} cells failed: {'; '.join(failed)}")
    return done


def _examples(options: ReproduceOptions, path: Path, console: Console) -> None:
    """Image and Pathfinder with the maps of their trained models, as far as these are there."""
    shown: list[tuple[str, Paramixer, Task]] = []
    for cell in EXPERIMENTS["table-lra"](options.scale, options.sources()):
        folders = [options.runs / key(cell.final(choice), cell.scale) for choice in cell.grid]
        folder = next((found for found in folders if (found / "model").is_dir()), None)
        wanted = cell.column in ("image", "pathfinder") and cell.row in (CHORD, CDIL)
        if wanted and folder is not None and cell.column not in [name for name, *_ in shown]:
            task = registry.load(str(cell.options.task), **cell.options.given())
            shown.append((cell.column, Paramixer.from_pretrained(folder / "model"), task))
    if not shown:
        console.print(f"no picture of examples: {options.runs} holds no trained model of Image or Pathfinder")
        return
    figures.examples(shown, path)
    console.print(f"drawn: {path}", highlight=False)


def _finished(name: str, kept: list[Kept]) -> list[Table]:
    found: list[Table] = []
    if name in ("figure-synthetic", "all"):
        found += paper_tables.synthetic([one for one in kept if one.experiment == "figure-synthetic"])
    if name in ("table-links", "all"):
        found += paper_tables.synthetic([one for one in kept if one.experiment == "table-links"])
    for experiment, columns in (
        ("table-lra", _LRA),
        ("table-documents", ("documents-16k", "documents-32k", "documents-smoke")),
        ("table-genome", GENOMES),
    ):
        if name in (experiment, "all"):
            own = [one for one in kept if one.experiment == experiment]
            found += paper_tables.accuracy(own, columns, f"{experiment}, on test, %")
    return found
