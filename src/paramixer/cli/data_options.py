"""The options of data: flags of ``paramixer data prepare``, and the keys ``data.*`` of ``paramixer train``."""

# No postponed annotations: the command line reads the types of the fields.
import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal


@dataclass(frozen=True, kw_only=True)
class DataOptions:
    """Which data, and how it is read. A task refuses options that it does not have."""

    source: Path | None = None
    """File or folder with the data."""
    length: int | None = None
    """N, the longest sequence; longer ones are cut. By default the task's."""
    text: str | None = None
    """Column of the texts, sequences or lists of numbers."""
    label: str | None = None
    """Column of the labels or values; in FASTA, where the label stands in the header."""
    labels: Path | None = None
    """A second file with the labels."""
    target: Literal["class", "value"] | None = None
    """Classify, or predict a value. By default the targets decide."""
    split: str | None = None
    """Column that says train, validation or test."""
    id: str | None = None
    """Column that names the sequences."""
    weight: str | None = None
    """Column that says how much each sequence counts in training."""
    encoding: str | None = None
    """Encoding of text files."""
    strict: bool | None = None
    """Refuse letters that are not in the alphabet."""
    train: int | None = None
    """Number of generated training sequences."""
    validation: float | None = None
    """Share, or number, of the validation sequences."""
    test: float | None = None
    """Share, or number, of the test sequences."""
    difficulty: str | None = None
    """Pathfinder: easy, medium, hard or pooled."""
    size: int | None = None
    """Pathfinder: pixels per side of an image."""
    windows: bool | None = None
    """Genomes: cut windows from chromosomes instead of taking whole sequences."""
    shortest: int | None = None
    """Genomes: leave out sequences that are not longer than this."""
    stride: int | None = None
    """Genomes: positions from one training window to the next, on average."""

    def given(self) -> dict[str, Any]:
        """Return the options that were given, as :func:`paramixer.data.load` takes them."""
        options = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return normalize({name: value for name, value in options.items() if value is not None})


def normalize(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options with sizes of splits as whole numbers where they are counts, not shares."""
    counts = {
        name: int(options[name])
        for name in ("validation", "test")
        if isinstance(options.get(name), float) and options[name] >= 1 and options[name].is_integer()
    }
    return options | counts
