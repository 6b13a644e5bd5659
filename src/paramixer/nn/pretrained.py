"""A model as a folder of data: config.json and model.safetensors, and nothing that could run.

Both files are replaced atomically, the weights first. The weights carry a digest of the config they belong to, so that
a pair torn by a crash or by hand is noticed instead of computing something else.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import uuid
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from paramixer.nn.config import ParamixerConfig

FORMAT = 1
CONFIG, WEIGHTS = "config.json", "model.safetensors"


def save_model(model: nn.Module, config: ParamixerConfig, folder: Path) -> None:
    """Write both files into the folder, which is made where it is missing."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise NotADirectoryError(f"{folder} is, or lies below, a file; give a folder to save into") from None
    state = {name: tensor.detach().contiguous() for name, tensor in model.state_dict().items()}
    replace_file(folder / WEIGHTS, _in_order(save(state, {"format": "pt", "config": _digest(config)})))
    document = {"model_type": "paramixer", "format": FORMAT, "config": dataclasses.asdict(config)}
    replace_file(folder / CONFIG, (json.dumps(document, indent=2) + "\n").encode())


def find(folder: str | Path) -> Path:
    """The local folder, or the hub's model of this name brought to one."""
    path = Path(folder)
    if path.is_dir():
        return path
    if path.exists():
        raise NotADirectoryError(f"{path} is a file; give the folder that save_pretrained wrote")
    name = str(folder)
    if name.count("/") != 1 or name.startswith((".", "/", "~")):
        raise FileNotFoundError(f"there is no folder {path}; give the folder that save_pretrained wrote")
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    try:
        return Path(snapshot_download(name, allow_patterns=[CONFIG, WEIGHTS]))
    except (HfHubHTTPError, HFValidationError, OSError) as error:
        raise FileNotFoundError(
            f"there is no folder {path}, and the hub gave no model of that name: {error}"
        ) from error


def load_config(folder: Path) -> ParamixerConfig:
    """The config of the folder, or one clear error."""
    path = folder / CONFIG
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} is missing; {folder} is not a saved Paramixer") from None
    except (ValueError, RecursionError, OSError) as error:
        raise ValueError(f"{path} is damaged, it is not JSON: {error}") from error
    if not isinstance(document, dict) or document.get("model_type") != "paramixer":
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
    unknown = settings.keys() - {field.name for field in dataclasses.fields(ParamixerConfig)}
    if unknown:
        raise ValueError(f"{path} has unknown settings: {', '.join(sorted(unknown))}")
    try:
        return ParamixerConfig(**settings)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path} has a wrong config: {error}") from error


def load_weights(model: nn.Module, config: ParamixerConfig, folder: Path) -> None:
    """Fill the model with the folder's weights: all of them, each of the right shape, and no others.

    The model may be on the meta device; it takes the weights' dtype.
    """
    path = folder / WEIGHTS
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing; {folder} has a config but no weights")
    try:
        with safe_open(path, framework="pt") as file:
            metadata: dict[str, Any] = file.metadata() or {}
            # Into torch's own memory: the file's is aligned otherwise, and products round differently there.
            found: dict[str, Tensor] = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise ValueError(f"{path} is damaged or no safetensors file: {error}") from error
    expected = model.state_dict()
    for what, names in (("lacks", expected.keys() - found.keys()), ("has unknown", found.keys() - expected.keys())):
        if names:
            raise ValueError(f"{path} {what} tensors: {', '.join(sorted(names))}; it does not belong to this config")
    for name, tensor in expected.items():
        if found[name].shape != tensor.shape:
            raise ValueError(
                f"{path}: {name} has shape {list(found[name].shape)}, the config asks for {list(tensor.shape)}"
            )
    dtypes = {tensor.dtype for tensor in found.values()}
    if len(dtypes) > 1 or not all(dtype.is_floating_point for dtype in dtypes):
        raise ValueError(f"{path} has tensors of {' and '.join(sorted(map(str, dtypes)))}; expected one float dtype")
    if metadata.get("config") != _digest(config):
        raise ValueError(
            f"{path} was saved with another config than {CONFIG} now holds; restore it, "
            "or load the model and change its settings in Python"
        )
    model.load_state_dict(found, assign=True)


def replace_file(path: Path, content: bytes) -> None:
    """Put content at path so that at any moment there is the old file or the new one, whole."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        write_synced(temporary, content)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def write_synced(path: Path, content: bytes) -> None:
    """A new file that is on the disk when this returns."""
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """The folder's list of names is on the disk when this returns."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _in_order(content: bytes) -> bytes:
    """The same safetensors file with its metadata sorted: safetensors writes it in an order that differs every time."""
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode().ljust(size)
    assert len(text) == size
    return content[:8] + text + content[8 + size :]


def _digest(config: ParamixerConfig) -> str:
    # Only what was chosen: a field that a later version adds changes nothing.
    defaults = {field.name: field.default for field in dataclasses.fields(config)}
    chosen = {name: value for name, value in dataclasses.asdict(config).items() if value != defaults[name]}
    return hashlib.sha256(json.dumps(chosen, sort_keys=True).encode()).hexdigest()
