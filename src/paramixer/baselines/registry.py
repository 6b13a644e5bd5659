"""Which systems there are, what they cost, what they cannot do, and how to build one."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import warnings
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Generator, nn

from paramixer.nn.config import ParamixerConfig

OWN = "paramixer"


class NotInstalledError(ValueError):
    """A package that a rival needs is not there; says how to get it."""


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """A system to compare with."""

    title: str
    """As the papers call it."""
    where: str
    """Module below this package, and the class or function in it."""
    cost: str
    """Work a position, as the length N grows."""
    linear: bool = False
    """Whether it is a model by itself, which is not trained by gradient steps."""
    whole: bool = False
    """Whether it is a whole layer by itself; others get norms, residuals and a feed-forward."""
    heads: bool = True
    """Whether it has heads."""
    feed_forward: bool = True
    """Whether its layer has one, ``hidden`` wide."""
    hidden: int = 4
    """``hidden`` as a multiple of the channels, unless something else is said."""
    packages: tuple[str, ...] = ()
    """What has to be importable."""
    sized_by: tuple[str, ...] = ("hidden",)
    """Fields of the config that change its number of parameters and not what it is; the channels come last."""
    cannot: str = ""
    """What it cannot do, in a few words."""
    authors: dict[str, dict[str, int]] = field(default_factory=dict)
    """Where the paper's authors ran it otherwise than with one layer and one head, by preset."""

    @property
    def missing(self) -> tuple[str, ...]:
        """Packages that are not installed."""
        return tuple(name for name in self.packages if importlib.util.find_spec(name) is None)

    def check(self) -> None:
        """Says how to install what is missing, if anything is."""
        if self.missing:
            raise NotInstalledError(
                f"{self.title} needs {', '.join(self.missing)}; install it with: pip install 'paramixer[baselines]'"
            )


BASELINES: dict[str, Baseline] = {
    "transformer": Baseline(
        title="Transformer",
        where="transformer:Transformer",
        cost="N",
        whole=True,
        hidden=1,
        authors={"hfdna": {"blocks": 4, "heads": 4}},
    ),
    "linformer": Baseline(
        title="Linformer",
        where="packaged:Linformer",
        cost="constant",
        packages=("linformer",),
        sized_by=("hidden", "rank"),
        cannot="parameters grow with N",
    ),
    "performer": Baseline(
        title="Performer", where="packaged:Performer", cost="constant", packages=("performer_pytorch",)
    ),
    "reformer": Baseline(
        title="Reformer",
        where="packaged:Reformer",
        cost="log N",
        packages=("reformer_pytorch",),
        cannot="answers vary from pass to pass; shorter sequences cost as much as the longest",
    ),
    "nystromformer": Baseline(
        title="Nystromformer",
        where="packaged:Nystromformer",
        cost="constant",
        packages=("nystrom_attention",),
        cannot="shorter sequences cost as much as the longest",
    ),
    "transformer-ls": Baseline(
        title="Transformer-LS",
        where="packaged:TransformerLS",
        cost="constant",
        packages=("long_short_transformer", "rotary_embedding_torch"),
        sized_by=("hidden", "rank"),
        authors={"mtcdna": {"blocks": 4, "heads": 4}},
    ),
    "longformer": Baseline(
        title="Longformer",
        where="huggingface:Longformer",
        cost="constant",
        packages=("transformers",),
        cannot="far positions meet through position 0 only",
    ),
    "bigbird": Baseline(
        title="BigBird",
        where="huggingface:BigBird",
        cost="constant",
        packages=("transformers",),
        cannot="fills an N x N array; far positions meet in the first and last block; shorter ones cost as the longest",
    ),
    "sparse-strided": Baseline(title="Sparse Transformer, strided", where="sparse:strided", cost="sqrt N", whole=True),
    "sparse-fixed": Baseline(title="Sparse Transformer, fixed", where="sparse:fixed", cost="sqrt N", whole=True),
    "linear": Baseline(title="Linear Transformer", where="kernels:LinearTransformer", cost="constant"),
    "rfa": Baseline(title="RFA-Gaussian", where="kernels:RandomFeatureAttention", cost="constant"),
    "chordmixer": Baseline(title="ChordMixer", where="rings:ChordMixer", cost="log N", whole=True, heads=False),
    "cdil-cnn": Baseline(title="CDIL-CNN", where="rings:CdilCnn", cost="log N", whole=True, hidden=1, heads=False),
    "sinkhorn": Baseline(
        title="Sinkhorn Transformer",
        where="sinkhorn:Sinkhorn",
        cost="N, for N / 64 buckets",
        packages=("sinkhorn_transformer",),
        cannot="a bucket sees one other; shorter sequences cost as much as the longest",
    ),
    "s4d": Baseline(title="S4D", where="s4d:S4D", cost="log N", heads=False),
    "mamba": Baseline(
        title="Mamba",
        where="huggingface:Mamba",
        cost="constant",
        hidden=2,
        heads=False,
        feed_forward=False,
        packages=("transformers",),
        cannot="without a GPU a Python loop over the positions",
    ),
    "ngrams": Baseline(
        title="n-gram counts + logistic regression",
        where="ngrams:Ngrams",
        cost="constant",
        linear=True,
        cannot="tokens with classes only; sees no order beyond a few tokens",
    ),
}


def baseline(name: str) -> Baseline:
    """The rival of this name."""
    if name not in BASELINES:
        close = difflib.get_close_matches(name, [OWN, *BASELINES], 1)
        hint = f", did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"there is no model {name!r}{hint}; paramixer models lists them")
    return BASELINES[name]


def layers(config: ParamixerConfig, generator: Generator | None = None) -> list[nn.Module]:
    """The layers of ``config.mixer``, each with a Paramixer block's signature: values, inputs, lengths."""
    chosen = baseline(config.mixer)
    if chosen.linear:
        raise ValueError(f"{config.mixer} is a model by itself, without layers; train it with paramixer train")
    chosen.check()
    if config.heads > 1 and not chosen.heads:
        raise ValueError(f"heads={config.heads}; {chosen.title} has no heads")
    if generator is None:
        return [_layer(chosen, config) for _ in range(config.blocks)]
    # Packages draw from torch's global random numbers; they are borrowed, and put back.
    seed = int(torch.randint(2**62, (), generator=generator))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return [_layer(chosen, config) for _ in range(config.blocks)]


def _layer(chosen: Baseline, config: ParamixerConfig) -> nn.Module:
    made = _found(chosen.where)(config)
    if chosen.whole:
        return made  # type: ignore[no-any-return]
    from paramixer.baselines.layer import Layer

    return Layer(config, made, feed_forward=chosen.feed_forward)


def _found(where: str) -> Any:
    module, name = where.split(":")
    with warnings.catch_warnings():
        # Old packages warn about what they import; their users cannot help it.
        warnings.simplefilter("ignore")
        return getattr(importlib.import_module(f"paramixer.baselines.{module}"), name)
