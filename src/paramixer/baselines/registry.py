"""Which baselines there are, what they cost, what they cannot do, and how to build one.

The only module of this package that others import.
"""

from __future__ import annotations

import dataclasses
import difflib
import importlib
import importlib.util
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Generator, nn

from paramixer.baselines.config import BaselineConfig as BaselineConfig
from paramixer.baselines.sizing import match_size
from paramixer.nn import pretrained
from paramixer.nn.config import ParamixerConfig, SequenceConfig
from paramixer.nn.pretrained import PretrainedModel


class NotInstalledError(ValueError):
    """A package that a baseline needs is missing; the message says how to install it."""


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """A system to compare with."""

    title: str
    """As the papers call it."""
    implementation: str
    """Module of this package, and the class or function in it."""
    cost: str
    """Work per position, as the length N grows."""
    closed_form: bool = False
    """Whether it is a whole model that is fitted without gradient steps."""
    complete_layer: bool = False
    """Whether it is a complete layer; others get norms, residuals and a feed-forward layer."""
    has_heads: bool = True
    """Whether its attention has heads."""
    has_feed_forward: bool = True
    """Whether its layer has a feed-forward part, ``hidden`` wide."""
    hidden_per_channel: int = 4
    """``hidden`` as a multiple of the channels, by default."""
    packages: tuple[str, ...] = ()
    """Packages that must be importable."""
    size_fields: tuple[str, ...] = ("hidden",)
    """Fields of its config that change its number of parameters and not what it is, to be tried in this order."""
    limitations: str = ""
    """What it cannot do, in a few words."""
    paper_settings: dict[str, dict[str, int]] = field(default_factory=dict)
    """By preset: where the paper's authors ran it otherwise than with one layer and one head."""

    @property
    def missing_packages(self) -> tuple[str, ...]:
        """Packages that are not installed."""
        return tuple(name for name in self.packages if importlib.util.find_spec(name) is None)

    def check_installed(self) -> None:
        """Raise an error that says how to install missing packages, if there are any."""
        if self.missing_packages:
            raise NotInstalledError(
                f"{self.title} needs {', '.join(self.missing_packages)}; "
                "install it with: pip install 'paramixer[baselines]'"
            )


BASELINES: dict[str, Baseline] = {
    "transformer": Baseline(
        title="Transformer",
        implementation="transformer:Transformer",
        cost="N",
        complete_layer=True,
        hidden_per_channel=1,
        paper_settings={"hfdna": {"blocks": 4, "heads": 4}},
    ),
    "linformer": Baseline(
        title="Linformer",
        implementation="packaged:Linformer",
        cost="constant",
        packages=("linformer",),
        size_fields=("hidden", "rank"),
        limitations="parameters grow with N",
    ),
    "performer": Baseline(
        title="Performer", implementation="packaged:Performer", cost="constant", packages=("performer_pytorch",)
    ),
    "reformer": Baseline(
        title="Reformer",
        implementation="packaged:Reformer",
        cost="log N",
        packages=("reformer_pytorch",),
        limitations="answers vary from pass to pass; shorter sequences cost as much as the longest",
    ),
    "nystromformer": Baseline(
        title="Nystromformer",
        implementation="packaged:Nystromformer",
        cost="constant",
        packages=("nystrom_attention",),
        limitations="shorter sequences cost as much as the longest",
    ),
    "transformer-ls": Baseline(
        title="Transformer-LS",
        implementation="packaged:TransformerLS",
        cost="constant",
        packages=("long_short_transformer", "rotary_embedding_torch"),
        size_fields=("hidden", "rank"),
        paper_settings={"mtcdna": {"blocks": 4, "heads": 4}},
    ),
    "longformer": Baseline(
        title="Longformer",
        implementation="huggingface:Longformer",
        cost="constant",
        packages=("transformers",),
        limitations="far positions meet through position 0 only",
    ),
    "bigbird": Baseline(
        title="BigBird",
        implementation="huggingface:BigBird",
        cost="constant",
        packages=("transformers",),
        limitations="fills an N x N array; far positions meet in the first and last block; short ones cost as much",
    ),
    "sparse-strided": Baseline(
        title="Sparse Transformer, strided", implementation="sparse:strided", cost="sqrt N", complete_layer=True
    ),
    "sparse-fixed": Baseline(
        title="Sparse Transformer, fixed", implementation="sparse:fixed", cost="sqrt N", complete_layer=True
    ),
    "linear": Baseline(title="Linear Transformer", implementation="kernels:LinearTransformer", cost="constant"),
    "rfa": Baseline(title="RFA-Gaussian", implementation="kernels:RandomFeatureAttention", cost="constant"),
    "chordmixer": Baseline(
        title="ChordMixer", implementation="rings:ChordMixer", cost="log N", complete_layer=True, has_heads=False
    ),
    "cdil-cnn": Baseline(
        title="CDIL-CNN",
        implementation="rings:CdilCnn",
        cost="log N",
        complete_layer=True,
        hidden_per_channel=1,
        has_heads=False,
    ),
    "sinkhorn": Baseline(
        title="Sinkhorn Transformer",
        implementation="sinkhorn:Sinkhorn",
        cost="N, for N / 64 buckets",
        packages=("sinkhorn_transformer",),
        limitations="a bucket sees one other; shorter sequences cost as much as the longest",
    ),
    "s4d": Baseline(title="S4D", implementation="s4d:S4D", cost="log N", has_heads=False),
    "mamba": Baseline(
        title="Mamba",
        implementation="huggingface:Mamba",
        cost="constant",
        hidden_per_channel=2,
        has_heads=False,
        has_feed_forward=False,
        packages=("transformers",),
        limitations="without a GPU a Python loop over the positions",
    ),
    "ngrams": Baseline(
        title="n-gram counts + logistic regression",
        implementation="ngrams:Ngrams",
        cost="constant",
        closed_form=True,
        limitations="tokens with classes only; sees no order beyond a few tokens",
    ),
}


def get(name: str) -> Baseline:
    """Return the baseline of this name."""
    if name not in BASELINES:
        close = difflib.get_close_matches(name, ["paramixer", *BASELINES], 1)
        hint = f", did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"there is no model {name!r}{hint}; paramixer models lists them")
    return BASELINES[name]


def settings_for(name: str, base: ParamixerConfig, preset: str | None = None) -> dict[str, Any]:
    """Return the fields of a baseline's config for comparison with a Paramixer.

    What every sequence model has is taken from the base; the rest is what the paper's authors ran: one layer and one
    head, unless they say otherwise for this preset.
    """
    baseline = get(name)
    shared = {field.name: getattr(base, field.name) for field in dataclasses.fields(SequenceConfig)}
    own = {"model": name, "hidden": baseline.hidden_per_channel * base.channels, "blocks": 1}
    return {**shared, **own, **baseline.paper_settings.get(preset or "", {})}


def configure(name: str, base: ParamixerConfig, preset: str | None, given: Mapping[str, Any]) -> BaselineConfig:
    """Return the config of :func:`settings_for` with the given fields in place of its own."""
    wide = dataclasses.replace(base, channels=given.get("channels", base.channels))
    return BaselineConfig(**{**settings_for(name, wide, preset), **given})


def build(
    config: SequenceConfig, generator: Generator | None = None, *, embedding_bound: float | None = None
) -> PretrainedModel:
    """Return a new model: a BaselineModel, or Ngrams.

    Args:
        config: a BaselineConfig; its ``model`` names the baseline.
        generator: where parameters are drawn from; torch's global generator by default.
        embedding_bound: token embeddings are uniform within this bound; None for standard normal.
    """
    if not isinstance(config, BaselineConfig):
        raise TypeError(f"config is a {type(config).__name__}, expected a BaselineConfig")
    baseline = get(config.model)
    baseline.check_installed()
    if config.heads > 1 and not baseline.has_heads:
        raise ValueError(f"heads={config.heads}; {baseline.title} has no heads, leave it at 1")
    if baseline.closed_form:
        model: PretrainedModel = _import(baseline.implementation)(config)
        return model
    from paramixer.baselines.model import BaselineModel

    return BaselineModel(config, make_layer, generator=generator, embedding_bound=embedding_bound)


def make_layer(config: BaselineConfig) -> nn.Module:
    """Return one layer, called with values ``[batch, length, channels]`` and lengths ``[batch]`` or None."""
    from paramixer.baselines.layer import Layer

    baseline = get(config.model)
    if baseline.closed_form:
        raise ValueError(f"{config.model} is a whole model, without layers; build it")
    module: nn.Module = _import(baseline.implementation)(config)
    return module if baseline.complete_layer else Layer(config, module, feed_forward=baseline.has_feed_forward)


def match_parameters(
    config: BaselineConfig, parameters: int, count: Callable[[BaselineConfig], int] | None = None
) -> BaselineConfig:
    """Return the config of the same baseline whose number of parameters is nearest to the given one.

    Args:
        config: of the baseline.
        parameters: how many.
        count: returns the number of parameters of a config; by default that of the whole model.
    """
    baseline = get(config.model)
    if baseline.closed_form:
        raise ValueError(f"{config.model} has as many parameters as columns; it cannot be matched")
    return match_size(config, baseline.size_fields, parameters, count or count_parameters)


def count_parameters(config: BaselineConfig) -> int:
    """Return the number of trainable parameters of a config's model."""
    model = build(config, torch.Generator())
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)


def load_pretrained(folder: str | Path) -> PretrainedModel:
    """Load the baseline that ``save_pretrained`` wrote, in evaluation mode."""
    saved = pretrained.read(folder, "baseline")
    config = saved.make_config(BaselineConfig)
    try:
        # Packages compute with what they draw, which needs memory.
        model = build(config, torch.Generator())
    except (RuntimeError, MemoryError, OverflowError) as error:
        raise ValueError(f"{saved.folder}: {config.model} cannot be built from its config: {error}") from error
    saved.load_weights(model)
    return model.eval()


def _import(implementation: str) -> Any:
    module, name = implementation.split(":")
    with warnings.catch_warnings():
        # Old packages warn about what they import; users cannot change that.
        warnings.simplefilter("ignore")
        return getattr(importlib.import_module(f"paramixer.baselines.{module}"), name)
