"""The one way from settings to a model: task, recipe and what the user gave become one resolved value."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from paramixer.baselines import registry
from paramixer.data.task import Task, TaskInfo
from paramixer.nn.config import ParamixerConfig, SequenceConfig
from paramixer.nn.init import INITIALIZATIONS, InitOptions
from paramixer.nn.model import Paramixer
from paramixer.recipes import PRESETS, Recipe, read_recipe, resolve_links
from paramixer.training.memory import check_parameters, check_step
from paramixer.training.options import TrainingOptions
from paramixer.training.sizing import choose_size
from paramixer.training.weights import check_balance

PARAMIXER = "paramixer"
DEFAULT_RECIPE = "default"
"""The recipe of Paramixer where none is named."""
# Fields of a config that the data decides.
DATA_FIELDS = ("length", "outputs", "vocabulary", "features", "target", "pad", "letters")
_STOPPING = ("epochs", "steps", "minutes")
# Stopping and evaluation of user files, where no recipe says otherwise.
_OWN_FILES = {"patience": 10, "evaluate_every": "growing"}

Settings = Mapping[str, Any]


@dataclass(frozen=True)
class Resolved:
    """Everything that decides a run beside the data and the seed; nothing is left to a default elsewhere."""

    recipe: str
    """The recipe that was taken."""
    system: str
    """"paramixer", or the name of a baseline."""
    config: SequenceConfig
    """Of the model."""
    init: InitOptions
    """How the model is initialized."""
    training: TrainingOptions
    """How it is trained; complete."""

    def document(self) -> dict[str, Any]:
        """Return the settings as YAML holds them; :func:`resolve` takes the sections back."""
        return {
            "recipe": self.recipe,
            "system": self.system,
            "model": describe_config(self.config),
            "init": dataclasses.asdict(self.init),
            "training": describe_options(self.training),
        }


def describe_config(config: SequenceConfig) -> dict[str, Any]:
    """Return the fields of a config that the data leaves open, as YAML holds them."""
    fields = dataclasses.asdict(config).items()
    return {name: _to_plain(value) for name, value in fields if name not in (*DATA_FIELDS, "model")}


def describe_options(options: TrainingOptions) -> dict[str, Any]:
    """Return the options that are set, as YAML holds them."""
    return {name: value for name, value in dataclasses.asdict(options).items() if value is not None}


def resolve(
    task: Task,
    *,
    recipe: str | Recipe | None = None,
    system: str = PARAMIXER,
    model: Settings | None = None,
    init: Settings | None = None,
    training: Settings | None = None,
    match_parameters: bool = False,
) -> Resolved:
    """Turn a task, a recipe and the user's settings into one validated value.

    Args:
        task: the data.
        recipe: a recipe, its name or its file; by default "default", and the paper's for a baseline.
        system: "paramixer", or a baseline's name.
        model: fields of the config that the user gave.
        init: fields of :class:`paramixer.nn.init.InitOptions` that the user gave.
        training: fields of :class:`TrainingOptions` that the user gave.
        match_parameters: whether a baseline gets as many parameters as Paramixer has on this task.
    """
    check_system(system, init or {}, match_parameters)
    base = recipe if isinstance(recipe, Recipe) else _read_recipe(task, recipe, system)
    given = dict(model or {})
    _refuse_data_fields(given)
    config: SequenceConfig
    if system == PARAMIXER:
        config = _resolve_config(task, base, given)
    else:
        config = _resolve_baseline(task, base, system, given, match_parameters)
    check_match(config, task)
    options = resolve_training(task, base, training or {})
    assert options.batch is not None
    check_parameters(config)
    check_step(config, min(options.batch, len(task.train)))
    chosen = {**base.init, **(init or {})}
    if not isinstance(config, ParamixerConfig):
        # A baseline draws its weights as its package does.
        chosen["name"] = None
    elif chosen.get("name") is None:
        chosen["name"] = INITIALIZATIONS[config.layer][0]
    return Resolved(base.name, system, config, InitOptions(**chosen), options)


def check_settings(recipe: str | None, system: str, model: Settings, init: Settings, training: Settings) -> None:
    """Raise a ValueError for settings that are wrong for every task, before any data is read.

    Args:
        recipe: as in :func:`resolve`, like the others.
        system: see recipe.
        model: see recipe.
        init: see recipe.
        training: see recipe.
    """
    layer = {"layer": read_recipe(recipe or DEFAULT_RECIPE, PRESETS[0]).model.get("layer", "prenorm")}
    TrainingOptions(**training)
    InitOptions(**init)
    _refuse_data_fields(model)
    check_system(system, init, False)
    if system == PARAMIXER:
        # Of any length that the windows leave something of.
        window = model.get("window")
        length = 2 * window if isinstance(window, int) and window > 512 else 1024
        check_pooling(ParamixerConfig(length=length, outputs=2, vocabulary=2, **{**layer, **model}))


def recipe_of(config: SequenceConfig) -> str:
    """Return the name of the recipe by which such a model is trained where none is named."""
    return DEFAULT_RECIPE if isinstance(config, ParamixerConfig) and config.layer == "prenorm" else "paper"


def resolve_training(
    task: Task, recipe: Recipe | None = None, given: Settings | TrainingOptions | None = None
) -> TrainingOptions:
    """Return complete training options.

    Args:
        task: the data.
        recipe: by default "default".
        given: what the user gave; it overrules the recipe.
    """
    recipe = recipe or read_recipe(DEFAULT_RECIPE, task.preset)
    if isinstance(given, TrainingOptions):
        given = {field.name: getattr(given, field.name) for field in dataclasses.fields(given)}
    chosen = {name: value for name, value in (given or {}).items() if value is not None}
    # The size of the data decides what a recipe leaves open.
    base = {**choose_size(task).training, **recipe.training}
    # A run that is resumed brings complete settings and a recipe without any.
    if task.name == "own" and recipe.training:
        base = {**_OWN_FILES, **base}
    if chosen.keys() & set(_STOPPING):
        # A limit that the user gives replaces those of the recipe.
        base = {name: value for name, value in base.items() if name not in _STOPPING}
    defaults = {
        "optimizer": "adam",
        "beta2": 0.999,
        "weight_decay": 0.0,
        "schedule": "constant",
        "warmup": 0,
        "clip": 0.0,
    }
    options = TrainingOptions(**{**defaults, **base, **chosen})
    if options.balance:
        check_balance(task)
    missing = [name for name in ("batch", "learning_rate") if getattr(options, name) is None]
    if missing:
        raise ValueError(f"neither the recipe {recipe.name} nor you give {' and '.join(missing)}")
    if not options.bounded:
        raise ValueError(f"recipe {recipe.name} does not say when to stop; give epochs, steps or minutes")
    return options


def _resolve_config(task: Task, recipe: Recipe, given: Settings) -> ParamixerConfig:
    # Each sequence at its own length, and no work for padding, unless the recipe says otherwise.
    padding = {"padding": "length"} if task.variable_length else {}
    prenorm = {**recipe.model, **given}.get("layer", "prenorm") == "prenorm"
    size = choose_size(task).model if prenorm else {}
    merged = {**size, **padding, **recipe.model, **data_fields(task), **given}
    if merged.get("protocol") == "links" and "links" not in given:
        merged["links"] = None
    return ParamixerConfig(**resolve_links(merged))


def _resolve_baseline(task: Task, recipe: Recipe, system: str, given: Settings, match: bool) -> SequenceConfig:
    shared = {field.name for field in dataclasses.fields(SequenceConfig)}
    own = _resolve_config(task, recipe, {name: value for name, value in given.items() if name in shared})
    unknown = given.keys() - {field.name for field in dataclasses.fields(registry.BaselineConfig)}
    if unknown:
        raise ValueError(f"{system} has no setting model.{min(unknown)}; leave it out")
    config = registry.configure(system, own, task.preset, given)
    if not match:
        return config
    with torch.device("meta"):
        wanted = sum(parameter.numel() for parameter in Paramixer(own, init=None).parameters())
    return registry.match_parameters(config, wanted)


def _read_recipe(task: TaskInfo, name: str | None, system: str) -> Recipe:
    return read_recipe(name or (DEFAULT_RECIPE if system == PARAMIXER else "paper"), task.preset)


def data_fields(task: TaskInfo) -> dict[str, Any]:
    """Return the fields of a config that the data decides."""
    return {
        "length": task.length,
        "outputs": task.outputs,
        "vocabulary": None if task.vocabulary is None else len(task.vocabulary),
        "features": task.features,
        "target": task.target,
        "pad": None if task.vocabulary is None else task.vocabulary.pad,
    }


def check_match(config: SequenceConfig, task: TaskInfo) -> None:
    """Raise a ValueError where the model does not answer what the task asks."""
    pairs = {
        "target": (config.target, task.target),
        "outputs": (config.outputs, task.outputs),
        "features": (config.features, task.features),
    }
    for name, (given, needed) in pairs.items():
        if given != needed:
            raise ValueError(f"the model has {name}={given}, {task.display_name} needs {name}={needed}")
    symbols = 0 if task.vocabulary is None else len(task.vocabulary)
    if (config.vocabulary or 0) < symbols:
        raise ValueError(f"the model has vocabulary={config.vocabulary}, {task.display_name} has {symbols} symbols")
    check_pooling(config)


def check_pooling(config: SequenceConfig) -> None:
    """Raise a ValueError for a model that predicts at every position: tasks have one target per sequence."""
    if config.pooling == "token":
        raise ValueError(
            "pooling='token' predicts at every position, but the task has one target per sequence; "
            "choose another, such as mean"
        )


def check_system(system: str, init: Settings, match_parameters: bool) -> None:
    """Raise a ValueError for settings that the system does not have."""
    if system == PARAMIXER:
        if match_parameters:
            raise ValueError("match_parameters sizes a baseline; name one, or leave it out")
        return
    registry.get(system)
    defaults = dataclasses.asdict(InitOptions())
    for name, value in init.items():
        if name != "embedding_bound" and value != defaults.get(name):
            raise ValueError(f"init.{name}={value!r} is for paramixer; {system} draws its weights as its package does")


def _refuse_data_fields(model: Settings) -> None:
    for field in DATA_FIELDS:
        if field in model:
            raise ValueError(f"model.{field}={model[field]!r}; the data decides it: leave it out")


def _to_plain(value: Any) -> Any:
    """Return tuples as lists, which YAML knows."""
    return [_to_plain(part) for part in value] if isinstance(value, tuple) else value
