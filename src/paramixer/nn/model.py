"""Paramixer: a stem, pre-norm layers with heads, and poolings of what they and the stem say.

A plain nn.Module for anyone's training loop. With ``layer="paper"`` it is the paper's network instead (paper.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self, cast

import torch
from torch import Generator, Tensor, nn

from paramixer.nn import pretrained
from paramixer.nn.config import ParamixerConfig
from paramixer.nn.init import UndrawnLinear, initialize, skip_draws
from paramixer.nn.inputs import check_inputs, pad_inputs
from paramixer.nn.layer import ParamixerLayer
from paramixer.nn.pooling import Poolings, Standardize
from paramixer.nn.sequence_model import Embedded, SequenceModel
from paramixer.nn.stem import Stem
from paramixer.ops.checks import past_end
from paramixer.ops.dropout import Dropout

# The stem is pooled by these, straight to the head, where the layers are.
_STEM_POOLINGS = ("mean", "templates")
# The factor of the poolings beside a bag of n-grams. They are many: through them a few sequences are known by heart
# before the bag has learned anything.
_BESIDE_BAG = 0.1
# Positions are sines and cosines of so many wavelengths, from four positions to twice the length.
_WAVELENGTHS = 16


class Paramixer(SequenceModel):
    """A network of Paramixer layers, or with ``layer="paper"`` the paper's of blocks.

    >>> import paramixer as pm, torch
    >>> model = pm.Paramixer(pm.ParamixerConfig(length=500, vocabulary=16, outputs=10))
    >>> model(torch.randint(16, (2, 500))).shape
    torch.Size([2, 10])

    The head reads poolings of the layers' output and of the stem itself. So a linear model of what stands where (a bag
    of n-grams, for a text) is inside the network from the first step; the layers add order and distance.

    Args:
        config: what to build; see :class:`ParamixerConfig`, and :func:`preset` for the paper's models.
        init: name of the initialization, see :func:`paramixer.nn.init.initialize`; by default the network's own. With
            None the parameters are left undrawn, for weights from a file.
        generator: where the parameters are drawn from; torch's global generator by default.
    """

    config: ParamixerConfig
    model_type: ClassVar = "paramixer"
    target_mean: Tensor
    target_std: Tensor

    def __new__(cls, config: ParamixerConfig | None = None, **options: Any) -> Self:
        """Return an object of this class, or of the paper's network; copies and pickles name their class themselves."""
        if cls is Paramixer and config is not None and config.layer == "paper":
            # It is a subclass of this class.
            from paramixer.nn.paper import PaperParamixer

            return cast(Self, super().__new__(PaperParamixer))
        return super().__new__(cls)

    def __init__(
        self, config: ParamixerConfig, *, init: str | None = "prenorm", generator: Generator | None = None
    ) -> None:
        super().__init__()
        self.config, self.window = config, config.window
        length, channels = config.mixed_length, config.channels
        self.per_position = config.pooling == "token"
        self.stem = Stem(config)
        self.places = UndrawnLinear(2 * _WAVELENGTHS, channels, bias=False) if config.positions else None
        self.dropout = Dropout(config.embedding_dropout)
        # Noise in a logit costs little where the classes are clear; noise in a value is an error of the same size.
        self.head_dropout = Dropout(config.head_dropout if config.target == "class" else 0.0)
        with skip_draws():
            self.blocks = nn.ModuleList(make_layer(config) for _ in range(config.blocks))
        self.norm = nn.LayerNorm(channels)
        self.pooling = Poolings(config.pooling, length, channels)
        self.stem_pooling = self.standardize = None
        width = self.pooling.width
        if not self.per_position:
            names = [name for name in _STEM_POOLINGS if name in config.pooling.split("+")]
            self.stem_pooling = Poolings("+".join(names or ["mean"]), length, channels)
            widths = [*self.pooling.widths, *self.stem_pooling.widths]
            bag = [self.stem.bag_width] if self.stem.bag_width else []
            factors = [_BESIDE_BAG if bag else 1.0] * len(widths) + [1.0] * len(bag)
            self.standardize = Standardize([*widths, *bag], factors)
            width = len(self.standardize.mean)
        self.readout = UndrawnLinear(width, config.outputs)
        if config.target == "value":
            self.register_buffer("target_mean", torch.zeros(config.outputs))
            self.register_buffer("target_std", torch.ones(config.outputs))
        if init is not None:
            initialize(self, init, generator)

    @classmethod
    def from_pretrained(cls, folder: str | Path) -> Paramixer:
        """Load the model that :meth:`save_pretrained` wrote, in evaluation mode.

        A name of the form "owner/model" that is no local folder is looked up on the Hugging Face hub.
        """
        saved = pretrained.read(folder, cls.model_type)
        config = saved.make_config(ParamixerConfig)
        # Without memory until the weights are known to fit: a damaged config may ask for any amount.
        with torch.device("meta"):
            model = cls(config, init=None)
        saved.load_weights(model)
        return model.eval()

    @torch.no_grad()
    def observe(self, batches: Iterable[tuple[Tensor, Tensor | None]], targets: Tensor | None = None) -> None:
        """Learn mean and scale of numbers, and which n-grams occur, from training sequences.

        Args:
            batches: inputs and lengths as :meth:`forward` takes them; each sequence once.
            targets: values ``[sequences]`` or ``[sequences, outputs]`` that the model is to predict. Its answers then
                start at their mean and have their scale, whatever unit they are in.
        """
        self.stem.observe(batches)
        if targets is not None and self.config.target == "value" and len(targets):
            values = targets.double().reshape(len(targets), -1)
            std = values.std(0, correction=0)
            self.target_mean.copy_(values.mean(0))
            self.target_std.copy_(torch.where(std > 0, std, 1.0))

    def paramixer_blocks(self) -> list[ParamixerLayer]:
        """Return the layers as a list with their own type."""
        return cast(list[ParamixerLayer], list(self.blocks))

    def embed(self, inputs: Tensor, lengths: Tensor | Sequence[int] | None = None) -> Embedded:
        """Check and pad inputs and return what the stem makes of them. Arguments as for :meth:`forward`."""
        check_inputs(self.config, inputs, self.readout.weight.dtype)
        inputs, counts = pad_inputs(self.config, inputs, lengths)
        values, bag = self.stem(inputs, counts)
        return Embedded(values, self.stem.count_windows(counts), bag=bag)

    def bag_shares(self, inputs: Tensor) -> Tensor | None:
        """Return what every window adds to the bag of n-grams, ``[batch, windows, width]``; None without n-grams."""
        padded, counts = pad_inputs(self.config, inputs, None)
        return self.stem.bag_shares(padded, counts)

    def mix(self, embedded: Embedded) -> Tensor:
        """Return the stem's output after all layers and a last norm, ``[batch, length, channels]``."""
        x = self._place(embedded)
        for layer in self.blocks:
            x = layer(x, embedded.lengths)
        mixed: Tensor = self.norm(x)
        if embedded.lengths is not None:
            # Poolings expect zeros past the ends.
            mixed = mixed.masked_fill(past_end(embedded.lengths, mixed.shape[1])[..., None], 0)
        return mixed

    @torch.no_grad()
    def link_inputs(self, embedded: Embedded) -> list[Tensor]:
        """Return the input of each layer, ``[batch, length, channels]``."""
        inputs, x = [], self._place(embedded)
        for layer in self.blocks:
            inputs.append(x)
            x = layer(x, embedded.lengths)
        return inputs

    def pool(self, mixed: Tensor, embedded: Embedded) -> Tensor:
        """Return what the head reads: standardized poolings of the layers' output and of the stem's."""
        if self.stem_pooling is None or self.standardize is None:
            return mixed
        lengths = embedded.lengths
        pooled = [self.pooling(mixed, lengths), self.stem_pooling(embedded.values, lengths)]
        if embedded.bag is not None:
            pooled.append(embedded.bag)
        standardized: Tensor = self.standardize(torch.cat(pooled, -1))
        return standardized

    def answer(self, mixed: Tensor, embedded: Embedded) -> Tensor:
        """Return the head's answer to mixed values: logits or values."""
        answer = self._read_out(self.head_dropout(self.pool(mixed, embedded)))
        if self.config.target == "value":
            answer = answer * self.target_std + self.target_mean
        return answer.squeeze(-1) if self.config.target == "value" and self.config.outputs == 1 else answer

    def squared_unit(self) -> float:
        """Return the variance of the values in training, in whose unit their squared errors are; 1 for classes."""
        return float(self.target_std.double().square().mean()) if self.config.target == "value" else 1.0

    @torch.no_grad()
    def soften(self, temperature: float) -> None:
        """Divide all logits by a temperature from now on: answers are less sure, and the likeliest class stays."""
        self.readout.weight.div_(temperature)
        self.readout.bias.div_(temperature)

    def _read_out(self, features: Tensor) -> Tensor:
        if self.per_position:
            answers: Tensor = self.readout(features)
            return answers
        # Not a matrix product, which rounds differently for other batch sizes: a sequence has the same answer whichever
        # others share its batch.
        return (features[:, None] * self.readout.weight).sum(-1) + self.readout.bias

    def _place(self, embedded: Embedded) -> Tensor:
        """Return the stem's output with what tells where it stands."""
        values = embedded.values
        if self.places is not None:
            values = values + self.places(self._waves(values))
        dropped: Tensor = self.dropout(values)
        return dropped

    def _waves(self, values: Tensor) -> Tensor:
        """Return sines and cosines of the positions, ``[length, 2 * wavelengths]``."""
        longest = 2 * max(self.config.mixed_length, 4)
        steps = torch.arange(values.shape[1], device=values.device, dtype=torch.float32)
        lengths = torch.logspace(math.log10(4), math.log10(longest), _WAVELENGTHS, device=values.device)
        angles = 2 * math.pi * steps[:, None] / lengths
        return torch.cat([angles.sin(), angles.cos()], 1).to(values.dtype)


def make_layer(config: ParamixerConfig, kind: type[ParamixerLayer] = ParamixerLayer) -> ParamixerLayer:
    """Return one layer of a config, of this class or of one derived from it."""
    return kind(
        config.mixed_length,
        config.channels,
        config.head_count,
        link_width=config.link_width,
        hidden=config.hidden,
        protocol=config.link_pattern(),
        ring=config.ring,
        dropout=config.block_dropout,
        depth=config.blocks,
        checkpoint_every=config.checkpoint_every,
    )
