"""The baseline of a run: its results in the record, its answers to the test sequences in a file beside it."""

from __future__ import annotations

from safetensors import SafetensorError
from safetensors.torch import load, save

from paramixer.files import replace_file
from paramixer.training.assessment.baseline import Baseline
from paramixer.training.runs.folder import RunFolder


def write_answers(folder: RunFolder, baseline: Baseline) -> None:
    """Write the answers; the record holds the rest."""
    if baseline.answers is not None:
        replace_file(folder.baseline, save({"answers": baseline.answers.contiguous()}))


def read_baseline(folder: RunFolder) -> Baseline | None:
    """Return the baseline that a run was started with; None if it has none."""
    document = folder.read_record().get("baseline")
    if document is None:
        return None
    try:
        answers = load(folder.baseline.read_bytes())["answers"] if folder.baseline.is_file() else None
    except (SafetensorError, KeyError) as error:
        raise ValueError(f"{folder.baseline} is damaged: {error}; remove it to go on without") from error
    return Baseline.from_document(document, answers)
