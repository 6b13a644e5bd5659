"""``paramixer export``: the model of a run as a file that runs without this package, checked before it is written."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from paramixer.data.progress import Progress, no_progress
from paramixer.export.formats import FORMATS, check_installed
from paramixer.export.preprocessing import describe
from paramixer.export.program import check_outputs, trace
from paramixer.files import replace_file, writing
from paramixer.training.factory import load_model
from paramixer.training.runs.folder import find_model_folder, read_inputs

TOLERANCE = 1e-5
PREPROCESSING, EXAMPLE = "preprocessing.json", "example.py"


@dataclass(frozen=True)
class Exported:
    """What was written."""

    model: Path
    """The model."""
    preprocessing: Path
    """How raw input becomes its input."""
    example: Path
    """A program that needs numpy and onnxruntime only, or torch for pt2."""
    difference: float
    """The largest difference from the model on the inputs that were compared, relative to answers above 1."""


def export_run(
    run: Path,
    format: str = "onnx",
    out: Path | None = None,
    tolerance: float = TOLERANCE,
    progress: Progress = no_progress,
) -> Exported:
    """Write the model of a run in a format, with its preprocessing and an example beside it.

    The file is compared with the model on sequences of several lengths and batch sizes first; nothing is written where
    they differ.

    Args:
        run: the run folder, or its model folder.
        format: "onnx" or "pt2".
        out: the file of the model, or a folder; by default the run's folder ``export``.
        tolerance: the largest difference, relative to answers above 1.
        progress: shows progress.
    """
    if format not in FORMATS:
        raise ValueError(f"there is no format {format!r}; choose from {', '.join(FORMATS)}")
    check_installed(format)
    folder = find_model_folder(run)
    path = _resolve(out if out is not None else run / "export", format)
    example, preprocessing = path.with_name(EXAMPLE), path.with_name(PREPROCESSING)
    info, _ = read_inputs(folder)
    # Exports are of single precision, whatever the model was trained in.
    model = load_model(folder).float().eval()
    if getattr(model.config, "model", None) == "ngrams":
        raise ValueError(
            f"{run} is a model of n-gram counts, which torch cannot trace; use it by pm.load({str(run)!r})"
        )
    program_text = Path(__file__).with_name("example.py").read_bytes()
    if example.exists() and example.read_bytes() != program_text:
        raise ValueError(f"{example} exists and is no example of paramixer export; give --out another folder")
    steps = iter(progress(("traced", "translated", "compared"), f"exporting to {format}"))
    next(steps)
    program = trace(model)
    next(steps)
    content, run_content = FORMATS[format](program)
    next(steps)
    difference = check_outputs(model, run_content, f"the {format} export", tolerance)
    next(steps, None)
    with writing(path, "nothing was written"):
        path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, content)
    document = {**describe(model, info), "model": path.name}
    replace_file(preprocessing, (json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode())
    replace_file(example, program_text)
    return Exported(path, preprocessing, example, difference)


def _resolve(out: Path, format: str) -> Path:
    """Return the file of the model; raise if it cannot be written."""
    if out.suffix in {f".{name}" for name in FORMATS} and not out.is_dir():
        if out.suffix != f".{format}":
            raise ValueError(
                f"--out {out} is no file of --format {format}; name it {out.with_suffix(f'.{format}').name}"
            )
        path = out
    else:
        path = out / f"model.{format}"
    blocking = next((parent for parent in path.parents if parent.exists() and not parent.is_dir()), None)
    if blocking is not None:
        raise NotADirectoryError(f"--out {out}: {blocking} is a file, not a folder")
    return path
