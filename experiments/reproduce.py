"""A table or figure of the paper, from its runs to the finished table."""

# No postponed annotations: the command line reads the fields' types.
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from rich.console import Console

from experiments import figures, rank
from experiments.cells import CDIL, CHORD, Cell, Scale, Sources, override
from experiments.page import comparisons, paper_tables
from experiments.page.compose import DEFAULT_COLUMNS, GENOMES, LONG, LRA, make_page
from experiments.plan import EXPERIMENTS
from experiments.records import StoredRun, read_runs
from experiments.reviews import write_reviews
from experiments.stand_ins import write_stand_ins
from experiments.sweep import Sweep
from paramixer.bench.rendering import Table, render
from paramixer.data import registry
from paramixer.data.task import Task
from paramixer.files import replace_file
from paramixer.nn.model import Paramixer
from paramixer.training.runs.run import open_task

_FILES = ("image", "text", "documents", "genome", "hfdna", "mtcdna")
# The data without which some cells are left out; without all of it a table has none.
_DATA = {
    "table-default": ("image", "text", "genome"),
    "table-ablations": ("image", "text", "genome"),
    "table-long": _FILES[:4],
    "table-systems": _FILES[:4],
    "table-lra": _FILES[:2],
    "figure-lengths": _FILES[1:4],
    "all": _FILES[:4],
}

Name = Literal[
    "figure-synthetic",
    "table-lra",
    "table-documents",
    "table-genome",
    "table-links",
    "table-default",
    "table-long",
    "table-systems",
    "table-ablations",
    "figure-rank",
    "figure-lengths",
    "figure-travel",
    "figure-protocols",
    "figure-network",
    "figure-pathfinder",
    "figure-examples",
    "page",
    "all",
]


@dataclass(frozen=True, kw_only=True)
class Options:
    """How to reproduce a table or figure."""

    scale: Scale = "smoke"
    """smoke checks that everything works, cpu is bounded minutes on two cores, paper is the paper's settings."""
    minutes: float | None = None
    """Stop after so many; the current run is saved, and goes on next time."""
    shard: str = "1/1"
    """Which share of the runs, as i/n, to split them over n machines; copy the records together afterwards."""
    only: str | None = None
    """Only cells whose model and column contain this text, in any case."""
    seeds: int | None = None
    """Seeds per cell; 1 if not given, and 4 at the paper's scale."""
    image: Path | None = None
    """CIFAR-10; if not given, looked for in the folder PARAMIXER_DATA, as the others are."""
    text: Path | None = None
    """The IMDB reviews."""
    documents: Path | None = None
    """arXiv papers."""
    genome: Path | None = None
    """A folder of FASTA files, one per class, for scale cpu."""
    hfdna: Path | None = None
    """The paper's human and fruit fly transcripts likewise, for scale paper."""
    mtcdna: Path | None = None
    """The paper's mouse and turtle cDNAs likewise, for scale paper."""
    results: Path = Path("results")
    """Folder of the records, for scale smoke its folder smoke; a run with a record is not repeated, on any data."""
    runs: Path = Path("runs/experiments")
    """Folder of the run folders; those of finished runs can be deleted."""
    docs: Path | None = None
    """Folder of results.md, which is then written; it is left alone if not given."""

    def __post_init__(self) -> None:
        self.parse_shard()
        for name in ("minutes", "seeds"):
            number = getattr(self, name)
            if number is not None and number <= 0:
                raise ValueError(f"{name}={number}; it must be positive")

    def parse_shard(self) -> tuple[int, int]:
        """Return i and n of the shard."""
        first, _, last = self.shard.partition("/")
        if not (first.isdecimal() and last.isdecimal() and 1 <= int(first) <= int(last)):
            raise ValueError(f"shard={self.shard!r}; write i/n with 1 <= i <= n, such as 2/4")
        return int(first), int(last)

    def find_sources(self) -> Sources:
        """Return where the data is, as given or looked up; at the smallest scale tiny files stand in for it."""
        if self.scale == "smoke":
            return write_stand_ins(self.runs / "stand-ins")
        given: dict[str, Path | None] = {name: getattr(self, name) for name in _FILES}
        for name, path in given.items():
            if path is not None and not path.exists():
                raise FileNotFoundError(f"--{name} {path} does not exist")
        sources = Sources(**{name: path or registry.find_local(name) for name, path in given.items()})
        return replace(sources, reviews=write_reviews(sources.text, self.runs) if sources.text else None)

    def records(self) -> Path:
        """Return the folder of this scale's records."""
        return self.results / "smoke" if self.scale == "smoke" else self.results


def list_experiment(name: str, options: Options) -> list[Cell]:
    """Return all cells of an experiment, one seed after the other."""
    cells = list(EXPERIMENTS[name](options.scale, options.find_sources()))
    if options.seeds is None:
        return cells
    first = [cell for cell in cells if cell.settings.seed == 0]
    return [
        replace(cell, settings=override(cell.settings, {"seed": seed}))
        for seed in range(options.seeds)
        for cell in first
    ]


def list_cells(name: str, options: Options) -> list[Cell]:
    """Return this shard's cells of one experiment, or of all."""
    every = [cell for known in EXPERIMENTS if name in (known, "all") for cell in list_experiment(known, options)]
    if name in EXPERIMENTS and not every:
        raise ValueError(f"{name}: no cell to run; is its data there? give it with a flag, or in PARAMIXER_DATA")
    wanted = [cell for cell in every if (options.only or "").lower() in f"{cell.row} {cell.column}".lower()]
    if every and not wanted:
        names = ", ".join(dict.fromkeys(f"{cell.row} {cell.column}" for cell in every))
        raise ValueError(f"no cell of {name} contains {options.only!r}; there are {names}")
    number, count = options.parse_shard()
    return wanted[number - 1 :: count]


def reproduce(name: Name, options: Options, console: Console) -> int:
    """Run what has no record, then print tables and draw figures; returns the number of cells that are done."""
    if name == "page" and options.docs is None:
        raise ValueError("say where to write the page, such as --docs docs")
    cells = list_cells(name, options)
    missing = [each for each in _DATA.get(name, ()) if getattr(options.find_sources(), each) is None]
    if missing:
        _print(console, f"left out for lack of data: {', '.join(missing)}; give it with a flag, or in PARAMIXER_DATA")
    sweep = Sweep(cells, options.records(), options.runs, console, options.minutes)
    done = sweep.run() if cells else 0
    _draw_figures(name, options, console)
    runs = [run for run in read_runs(options.records()) if run.scale == options.scale]
    for table in _tabulate(name, runs):
        console.print(render(table))
    if options.docs is not None and (name == "page" or options.results.is_dir()):
        path = options.docs / "results.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, make_page(options.results, options.docs / "results").encode())
        _print(console, f"written: {path}")
    if sweep.failed:
        raise ValueError(f"{len(sweep.failed)} of {len(cells)} cells failed: {'; '.join(sweep.failed)}")
    return done


def _draw_figures(name: str, options: Options, console: Console) -> None:
    records = options.records()
    pictures = options.docs / "results" if options.docs else records / "figures"
    # Pictures of stand-ins are no pictures of the data.
    data_pictures = records / "figures" if options.scale == "smoke" else pictures
    if name in (rank.NAME, "all"):
        cells = list_experiment(rank.NAME, options)
        if rank.compare_models(cells, records, options.runs) is None:
            _print(
                console,
                f"singular values are not measured again: {options.runs} does not hold all models of {rank.NAME}; "
                f"delete their records in {records / rank.NAME} to train them again",
            )
    for experiment, (file, draw) in figures.DRAWINGS.items():
        if name in (experiment, "all"):
            path = (options.docs or records) / "figures" / file
            draw(path)
            _print(console, f"drawn: {path}")
    if name in ("figure-examples", "all"):
        _draw_examples(options, data_pictures / "examples.png", console)
    if name in ("figure-lengths", "all"):
        longest = 512 if options.scale == "smoke" else None
        for path in figures.measure_lengths(options.find_sources(), records, data_pictures, longest):
            _print(console, f"written: {path}")


def _draw_examples(options: Options, path: Path, console: Console) -> None:
    """Draw Image and Pathfinder with the maps of their trained models, as far as these exist."""
    examples: dict[str, tuple[str, Paramixer, Task]] = {}
    for run in read_runs(options.records(), "table-lra"):
        model = options.runs / run.key / "model"
        is_shown = run.column in ("image", "pathfinder") and run.row in (CHORD, CDIL) and run.scale == options.scale
        if is_shown and not run.trial and run.column not in examples and model.is_dir():
            task = open_task(options.runs / run.key)
            examples[run.column] = run.column, Paramixer.from_pretrained(model), task
    if not examples:
        _print(console, f"no picture of examples: {options.runs} holds no trained model of Image or Pathfinder")
        return
    figures.draw_examples(list(examples.values()), path)
    _print(console, f"drawn: {path}")


def _tabulate(name: str, runs: list[StoredRun]) -> list[Table]:
    tables: list[Table] = []
    for experiment in ("figure-synthetic", "table-links", "table-default"):
        if name in (experiment, "all"):
            tables += paper_tables.tabulate_synthetic([run for run in runs if run.experiment == experiment])
    for experiment, columns in (
        ("table-lra", LRA),
        ("table-documents", ("documents-16k", "documents-32k", "documents-smoke")),
        ("table-genome", GENOMES),
        ("table-default", DEFAULT_COLUMNS),
        ("table-long", LONG),
        ("table-systems", (*LRA, "documents-16k", "documents-smoke", "genome")),
    ):
        if name in (experiment, "all"):
            selected = [run for run in runs if run.experiment == experiment]
            tables += paper_tables.tabulate_accuracy(selected, columns, f"{experiment}, on test, %")
    if name in ("table-ablations", "all"):
        tables += comparisons.tabulate_ablations(runs)
    return tables


def _print(console: Console, line: str) -> None:
    console.print(line, highlight=False, soft_wrap=True)
