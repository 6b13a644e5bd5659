"""Which extra brings which package, and the error that names it when a package is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from paramixer.errors import MissingExtraError

# By the name that is imported. tests/test_packaging.py compares it with pyproject.toml.
EXTRAS: dict[str, tuple[str, ...]] = {
    "cli": (
        "cyclopts",
        "docstring_parser",
        "rich",
        "pyarrow",
        "platformdirs",
        "filelock",
        "sklearn",
        "scipy",
        "matplotlib",
        "PIL",
        "jinja2",
        "markupsafe",
        "accelerate",
        "huggingface_hub",
    ),
    "baselines": (
        "linformer",
        "performer_pytorch",
        "reformer_pytorch",
        "nystrom_attention",
        "long_short_transformer",
        "rotary_embedding_torch",
        "transformers",
        "sinkhorn_transformer",
    ),
    "tensorboard": ("tensorboard",),
    "audio": ("soundfile",),
    "onnx": ("onnx", "onnxscript", "onnxruntime"),
    "gpu": ("triton",),
}
# What pip calls packages that are imported by another name.
_DISTRIBUTIONS = {"PIL": "pillow", "sklearn": "scikit-learn"}


@contextmanager
def needed_for(what: str) -> Iterator[None]:
    """Turn the missing package of an extra into one sentence; ``what`` is what the caller asked for."""
    try:
        yield
    except ModuleNotFoundError as error:
        sentence = describe_missing(error, what)
        if sentence is None:
            raise
        raise MissingExtraError(sentence, name=error.name) from error


def describe_missing(error: ModuleNotFoundError, what: str) -> str | None:
    """Return the sentence that names the extra of a missing package, or None if no extra has it."""
    package = (error.name or "").partition(".")[0]
    for extra, packages in EXTRAS.items():
        if package in packages:
            distribution = _DISTRIBUTIONS.get(package, package)
            return f"{what} needs {distribution}, which comes with: pip install 'paramixer[{extra}]'"
    return None
