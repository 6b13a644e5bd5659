"""A model as a folder of data: config.json and model.safetensors, and nothing that could run.

Tables with row-sparse gradients are stored as their rows that are not zero (row_storage.py).

Both files are replaced atomically, the weights first. The weights carry a digest of the config they belong to: a pair
torn by a crash or changed by hand is an error.

Format 3 of config.json holds ``model_type``, "paramixer" or "baseline", and the config. Format 2 knew the paper's
network only, with other defaults. Format 1 had one config for Paramixer and baselines, with initialization in it. Both
are still read.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from paramixer.files import read_json, replace_file
from paramixer.nn.config import SequenceConfig
from paramixer.nn.plausibility import check_finite, check_size
from paramixer.nn.row_storage import RowStorage

FORMAT = 3
CONFIG, WEIGHTS = "config.json", "model.safetensors"
MODEL_TYPES = ("paramixer", "baseline")
# A table of offsets may be long; nothing else in a config is.
_MOST_CONFIG_BYTES = 2**24

C = TypeVar("C", bound=SequenceConfig)


class PretrainedModel(nn.Module, ABC):
    """A module with a config that answers batches of sequences and can be saved as a folder."""

    config: SequenceConfig
    model_type: ClassVar[str]
    newer_tensors: ClassVar[frozenset[str]] = frozenset()
    """Names that files of earlier versions lack; there a new model's own values count."""

    @abstractmethod
    def forward(self, inputs: Tensor, lengths: Tensor | Sequence[int] | None = None) -> Tensor:
        """Return logits or values for a batch of sequences."""

    def save_pretrained(self, folder: str | Path) -> None:
        """Write config.json and model.safetensors into the folder, each atomically; the folder is made if missing."""
        path = Path(folder)
        try:
            path.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise NotADirectoryError(f"{path} is, or is below, a file; give a folder to save into") from None
        state = {name: tensor.detach().contiguous() for name, tensor in self.state_dict().items()}
        metadata = {"format": "pt", "config": _digest(self.config)}
        replace_file(path / WEIGHTS, _sort_metadata(save(RowStorage.of(self).pack(state), metadata)))
        document = {"model_type": self.model_type, "format": FORMAT, "config": dataclasses.asdict(self.config)}
        replace_file(path / CONFIG, (json.dumps(document, indent=2) + "\n").encode())


@dataclasses.dataclass(frozen=True)
class SavedModel:
    """A folder's config.json, read and checked except for the values of its settings."""

    folder: Path
    """The folder."""
    model_type: str
    """ "paramixer" or "baseline"."""
    settings: dict[str, Any]
    """Fields of the config."""
    digest: str | None
    """The digest that the weights must carry; None for that of the config itself."""

    def make_config(self, kind: type[C]) -> C:
        """Return the settings as a validated config."""
        path = self.folder / CONFIG
        unknown = self.settings.keys() - {field.name for field in dataclasses.fields(kind)}
        if unknown:
            raise ValueError(f"{path} has unknown settings: {', '.join(sorted(unknown)[:5])}")
        check_size(self.folder, self.model_type, self.settings)
        try:
            return kind(**self.settings)
        except ValueError as error:
            raise ValueError(f"{path} has a wrong config: {error}") from error

    def load_weights(self, model: PretrainedModel) -> None:
        """Fill the model with the folder's weights: all of them, each of the right shape, and no others.

        The model may be on the meta device; it takes the weights' dtype. Tensors are read only when all of them fit.
        """
        path = self.folder / WEIGHTS
        if not path.is_file():
            raise FileNotFoundError(f"{path} is missing; {self.folder} has a config but no weights")
        storage = RowStorage.of(model)
        try:
            with safe_open(path, framework="pt") as file:
                names = list(file.keys())
                shapes = {name: file.get_slice(name).get_shape() for name in names}
                _check_shapes(path, model, storage.unpack_shapes(shapes, path))
                metadata = file.metadata() or {}
                # Copied into torch's own memory: the file's is aligned differently, and products round differently.
                weights: dict[str, Tensor] = {name: file.get_tensor(name).clone() for name in names}
        except SafetensorError as error:
            raise ValueError(f"{path} is damaged or no safetensors file: {error}") from error
        check_finite(
            path, weights, {name for name, _ in model.named_buffers()} if self.model_type == "baseline" else ()
        )
        weights = storage.unpack(weights, path)
        own = {name: tensor.dtype for name, tensor in model.state_dict().items()}
        dtypes = {tensor.dtype for name, tensor in weights.items() if own[name].is_floating_point}
        for name, tensor in weights.items():
            if not own[name].is_floating_point and tensor.dtype != own[name]:
                raise ValueError(f"{path} has {name} of {tensor.dtype}, expected {own[name]}")
        if len(dtypes) > 1 or not all(dtype.is_floating_point for dtype in dtypes):
            raise ValueError(
                f"{path} has tensors of {' and '.join(sorted(map(str, dtypes)))}; expected one float dtype"
            )
        if metadata.get("config") != (self.digest or _digest(model.config)):
            raise ValueError(
                f"{path} was saved with another config than {CONFIG} now holds; restore it, "
                "or load the model and change its settings in Python"
            )
        kept = {name: tensor for name, tensor in model.state_dict().items() if name in model.newer_tensors}
        model.load_state_dict({**kept, **weights}, assign=True)


def read(folder: str | Path, expected: str | None = None) -> SavedModel:
    """Read a saved model's config.json, or raise one clear error.

    Args:
        folder: a local folder, or a name "owner/model" of the Hugging Face hub.
        expected: the model type it must have, "paramixer" or "baseline"; None for either.
    """
    path = find_folder(folder) / CONFIG
    try:
        document = read_json(path, _MOST_CONFIG_BYTES)
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} is missing; {path.parent} is not a saved Paramixer") from None
    if not isinstance(document, dict) or document.get("model_type") not in MODEL_TYPES:
        raise ValueError(f"{path} does not describe a Paramixer; is it another library's model?")
    version = document.get("format")
    if type(version) is not int or version < 1:
        raise ValueError(f"{path} has format {version!r}, which no version of paramixer writes; save the model again")
    if version > FORMAT:
        known = f"this version of paramixer reads up to format {FORMAT}"
        raise ValueError(f"{path} has format {version}, {known}; install a newer paramixer")
    settings = document.get("config")
    if not isinstance(settings, dict):
        raise ValueError(f"{path} has no config; save the model again")
    if version == 1:
        saved = _upgrade_format_1(path, settings)
    elif version == 2 and document["model_type"] == "paramixer":
        digest = _digest_settings(settings, _FORMAT_2_DEFAULTS)
        saved = SavedModel(path.parent, "paramixer", {**_FORMAT_2_DEFAULTS, **settings, "layer": "paper"}, digest)
    else:
        saved = SavedModel(path.parent, document["model_type"], settings, None)
    if expected not in (None, saved.model_type):
        loader = {"paramixer": "Paramixer.from_pretrained", "baseline": "baselines.registry.load_pretrained"}
        raise ValueError(f"{path} describes a {saved.model_type}; load it with {loader[saved.model_type]}")
    return saved


def model_type(folder: str | Path) -> str:
    """Return "paramixer" or "baseline", whichever the folder holds."""
    return read(folder).model_type


def find_folder(folder: str | Path) -> Path:
    """Return the local folder, or download the hub's model of this name and return where it is."""
    path = Path(folder)
    if path.is_dir():
        return path
    if path.exists():
        raise NotADirectoryError(f"{path} is a file; give the folder that save_pretrained wrote")
    name = str(folder)
    if name.count("/") != 1 or name.startswith((".", "/", "~")):
        raise FileNotFoundError(f"there is no folder {path}; give the folder that save_pretrained wrote")
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HfHubHTTPError, HFValidationError
    except ImportError:
        raise FileNotFoundError(
            f"there is no folder {path}; to download a model of that name: pip install 'paramixer[cli]'"
        ) from None
    try:
        return Path(snapshot_download(name, allow_patterns=[CONFIG, WEIGHTS]))
    except (HfHubHTTPError, HFValidationError, OSError) as error:
        raise FileNotFoundError(
            f"there is no folder {path}, and the hub gave no model of that name: {error}"
        ) from error


_FORMAT_2_DEFAULTS: dict[str, Any] = {
    "vocabulary": None,
    "features": None,
    "channels": 32,
    "positions": True,
    "pooling": "flat",
    "target": "class",
    "embedding_dropout": 0.0,
    "block_dropout": 0.0,
    "pad": None,
    "padding": "symbol",
    "hidden": 32,
    "blocks": 1,
    "protocol": "chord",
    "links": None,
    "factors": None,
    "table": None,
    "residual": "factor",
    "ring": True,
    "link_input": "first",
    "checkpoint_every": 1,
}
_FORMAT_1_DEFAULTS: dict[str, Any] = {
    "vocabulary": None,
    "features": None,
    "channels": 32,
    "hidden": 32,
    "blocks": 1,
    "mixer": "paramixer",
    "heads": 1,
    "rank": None,
    "window": None,
    "protocol": "chord",
    "links": None,
    "factors": None,
    "table": None,
    "residual": "factor",
    "ring": True,
    "link_input": "first",
    "positions": True,
    "pooling": "flat",
    "target": "class",
    "embedding_dropout": 0.0,
    "block_dropout": 0.0,
    "pad": None,
    "padding": "symbol",
    "init": "paper",
    "embedding_bound": None,
    "amounts": False,
    "keep": 1,
}
_FORMAT_1_INIT = ("init", "embedding_bound", "amounts")
_FORMAT_1_BASELINE = ("mixer", "heads", "rank", "window")
_FORMAT_1_PARAMIXER = ("protocol", "links", "factors", "table", "residual", "ring", "link_input", "keep")


def _upgrade_format_1(path: Path, settings: Mapping[str, Any]) -> SavedModel:
    """Split format 1's one config into Paramixer's and a baseline's, and drop initialization."""
    unknown = settings.keys() - {"length", "outputs", *_FORMAT_1_DEFAULTS}
    if unknown:
        raise ValueError(f"{path} has unknown settings: {', '.join(sorted(unknown))}")
    digest = _digest_settings(settings, _FORMAT_1_DEFAULTS)
    is_paramixer = settings.get("mixer", "paramixer") == "paramixer"
    dropped = {*_FORMAT_1_INIT, *(_FORMAT_1_BASELINE if is_paramixer else _FORMAT_1_PARAMIXER)}
    renamed = {"keep": "checkpoint_every", "mixer": "model"}
    upgraded = {renamed.get(name, name): value for name, value in settings.items() if name not in dropped}
    if is_paramixer:
        upgraded["layer"] = "paper"
    return SavedModel(path.parent, "paramixer" if is_paramixer else "baseline", upgraded, digest)


def _check_shapes(path: Path, model: PretrainedModel, shapes: Mapping[str, Sequence[int]]) -> None:
    newer = model.newer_tensors - shapes.keys()
    expected = {name: tensor for name, tensor in model.state_dict().items() if name not in newer}
    for what, names in (("lacks", expected.keys() - shapes.keys()), ("has unknown", shapes.keys() - expected.keys())):
        if names:
            more = f" and {len(names) - 5} more" if len(names) > 5 else ""
            raise ValueError(
                f"{path} {what} tensors: {', '.join(sorted(names)[:5])}{more}; it does not belong to this config"
            )
    for name, tensor in expected.items():
        if torch.Size(shapes[name]) != tensor.shape:
            raise ValueError(f"{path}: {name} has shape {list(shapes[name])}, the config asks for {list(tensor.shape)}")


def _sort_metadata(content: bytes) -> bytes:
    """Return the same safetensors file with its metadata sorted; safetensors writes it in an order that varies."""
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode().ljust(size)
    assert len(text) == size
    return content[:8] + text + content[8 + size :]


def _digest(config: SequenceConfig) -> str:
    defaults = {field.name: field.default for field in dataclasses.fields(config)}
    return _digest_settings(dataclasses.asdict(config), defaults)


def _digest_settings(settings: Mapping[str, Any], defaults: Mapping[str, Any]) -> str:
    """Return a digest of the settings that differ from the defaults: a field added later changes nothing."""
    chosen = {name: value for name, value in settings.items() if name not in defaults or value != defaults[name]}
    return hashlib.sha256(json.dumps(chosen, sort_keys=True).encode()).hexdigest()
