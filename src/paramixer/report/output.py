"""Where pages and figures are written."""

from __future__ import annotations

from pathlib import Path

from paramixer.files import replace_file, writing


def resolve_output(path: Path, default_name: str | None = None) -> Path:
    """Return the file to write to; raise if it cannot be written. Call it before a long computation.

    Args:
        path: a file, or a folder if ``default_name`` is given.
        default_name: name of the file in a folder.
    """
    if path.is_dir():
        if default_name is None:
            raise IsADirectoryError(f"--out {path} is a folder; give another name")
        return path / default_name
    blocking = next((parent for parent in path.parents if parent.exists() and not parent.is_dir()), None)
    if blocking is not None:
        raise NotADirectoryError(f"--out {path}: {blocking} is a file, not a folder")
    return path


def resolve_explanation(path: Path) -> tuple[Path, Path]:
    """Return the files of the figure and of the page of an explanation; a .png or .html suffix is ignored."""
    stem = path.with_suffix("") if path.suffix in (".png", ".html") else path
    base = resolve_output(stem, "explanation")
    return resolve_output(base.with_name(f"{base.name}.png")), resolve_output(base.with_name(f"{base.name}.html"))


def write_output(path: Path, content: bytes) -> None:
    """Write the file atomically; make its folder if there is none."""
    with writing(path, "nothing was written"):
        path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, content)
