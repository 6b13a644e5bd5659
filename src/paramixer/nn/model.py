"""Paramixer: embedding and positions, a stack of blocks, a head. A plain nn.Module for anyone's training loop."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from paramixer.baselines import registry
from paramixer.nn import init, pretrained
from paramixer.nn.block import ParamixerBlock
from paramixer.nn.config import ParamixerConfig
from paramixer.nn.pooling import Head
from paramixer.ops.chain import kept_factors
from paramixer.ops.checks import autocasting, check_length_values, length_tensor, past_end
from paramixer.ops.dropout import Dropout

# Links are written once for every distinct row of X0 where each row is shared by so many positions, in the mean,
_SHARED = 2
# and where looking for them among all pairs of symbol and place costs little: so many for each position.
_SPARSE = 32


class Paramixer(nn.Module):
    """A network of Paramixer blocks.

    >>> import paramixer as pm, torch
    >>> model = pm.Paramixer(pm.preset("listops", length=64))
    >>> model(torch.randint(16, (2, 64))).shape
    torch.Size([2, 10])

    Args:
        config: what to build; see :class:`ParamixerConfig` and :func:`preset`.
        generator: where the initial parameters are drawn from; torch's global generator by default.
    """

    def __init__(self, config: ParamixerConfig, *, generator: Generator | None = None) -> None:
        super().__init__()
        self.config = config
        self.embedding: nn.Module
        if config.vocabulary is not None:
            self.embedding = init.embedding(
                config.vocabulary, config.channels, config.embedding_bound, config.pad, generator, config.amounts
            )
        else:
            assert config.features is not None
            self.embedding = init.linear(config.features, config.channels, generator)
        self.positions: nn.Embedding | None = None
        if config.positions:
            self.positions = init.embedding(config.length, config.channels, None, None, generator)
        self.dropout = Dropout(config.embedding_dropout)
        self.blocks = nn.ModuleList(blocks(config, generator))
        self.head = Head(config.length, config.channels, config.pooling, config.target, config.outputs, generator)
        if config.init in ("local", "even") and self.positions is not None:
            # Where a symbol stands tells less than which it is.
            self.positions.weight.data *= 0.1
        if config.init == "pairs" and self.positions is not None:
            # How far two tokens are apart must be told from where they stand, before any position is known by itself.
            init.harmonics_(self.positions.weight, 2 if config.amounts else 1, generator)
        if config.init in ("local", "pairs"):
            # What a head makes of values that mean nothing yet is noise, over all of a long sequence much of it.
            nn.init.zeros_(self.head.linear.weight)
        if config.init == "even":
            # What blocks learn from one position then holds at all of them, long before the head has seen them all.
            init.even_(self.head.linear.weight, config.channels, generator)

    def forward(self, inputs: Tensor, lengths: Tensor | Sequence[int] | None = None) -> Tensor:
        """Logits or values for a batch of sequences.

        Args:
            inputs: token ids ``[batch, length]``, or real vectors ``[batch, length, features]``.
            lengths: ``[batch]``, how many positions of each sequence count; what lies past them does not. By default
                all of them; with ``padding="length"`` and a pad id, trailing PADs do not count.

        Returns:
            ``[batch, outputs]``; ``[batch, length, outputs]`` with pooling "token"; without the last axis for a single
            value.
        """
        self._check(inputs)
        width = inputs.shape[1]
        inputs, lengths = self._padded(inputs, lengths)
        answer: Tensor = self.head(self._mixed(self._embed(inputs), lengths, self._distinct(inputs)), lengths)
        return answer[:, :width] if self.config.pooling == "token" else answer

    def save_pretrained(self, folder: str | Path) -> None:
        """Write config.json and model.safetensors into the folder, each atomically. Nothing in it ever runs code."""
        pretrained.save_model(self, self.config, Path(folder))

    @classmethod
    def from_pretrained(cls, folder: str | Path) -> Paramixer:
        """The model that :meth:`save_pretrained` wrote, in evaluation mode.

        A name of the form "owner/model" that is no local folder is looked up on the Hugging Face hub.
        """
        path = pretrained.find(folder)
        config = pretrained.load_config(path)
        if config.mixer == registry.OWN:
            # Without memory until the weights are known to fit: a damaged config may ask for any amount.
            with torch.device("meta"):
                model = cls(config)
        else:
            # Packages compute with what they draw, which needs memory.
            model = cls(config, generator=torch.Generator())
        pretrained.load_weights(model, config, path)
        return model.eval()

    def _padded(self, inputs: Tensor, lengths: Tensor | Sequence[int] | None) -> tuple[Tensor, Tensor | None]:
        """Inputs whose padding is harmless, and the lengths that the blocks are to see."""
        config = self.config
        batch, width = inputs.shape[:2]
        counts = length_tensor("Paramixer", lengths, batch)
        if counts is not None:
            counts = counts.to(inputs.device)
            if not torch.compiler.is_compiling():
                check_length_values("Paramixer", counts, width)
        elif config.padding == "length" and config.pad is not None:
            places = torch.arange(1, width + 1, device=inputs.device)
            counts = torch.where(inputs != config.pad, places, 0).amax(1)
        if counts is not None:
            # What lies past the end may be anything, NaN included, and must reach no product.
            past = past_end(counts, width)
            if config.padding == "symbol" and config.pad is None:
                raise ValueError(f"lengths need padding='length'{self._or_pad()}")
            inputs = inputs.masked_fill(past if inputs.dim() == 2 else past[..., None], config.pad or 0)
        if config.padding == "length":
            return self._checked_ids(inputs), counts
        if config.pad is not None:
            inputs = F.pad(inputs, (0, config.length - width), value=config.pad)
        elif width < config.length:
            raise ValueError(
                f"length {width} is shorter than the model's {config.length}; give full sequences, "
                f"use padding='length'{self._or_pad()}"
            )
        return self._checked_ids(inputs), None

    def _or_pad(self) -> str:
        return "" if self.config.vocabulary is None else ", or a pad id"

    def _embed(self, inputs: Tensor) -> Tensor:
        """X0: the embedded input with its positions."""
        embedded: Tensor = self.embedding(inputs)
        if self.positions is not None:
            positions = self.positions.weight[: inputs.shape[1]]
            # In place where the rows are a fresh copy of the table's; what a linear layer returns is a view.
            embedded = embedded + positions if self.config.vocabulary is None else embedded.add_(positions)
        dropped: Tensor = self.dropout(embedded)
        return dropped

    def _mixed(self, first: Tensor, lengths: Tensor | None, distinct: tuple[Tensor, Tensor] | None = None) -> Tensor:
        """X0 through all blocks; where its distinct rows are known, each of them writes its links only once."""
        values: Tensor = self.dropout(first)
        for block in self.blocks:
            if distinct is not None:
                table, symbols = distinct
                values = block(values, table, lengths, symbols)
            else:
                values = block(values, first if self.config.link_input == "first" else values, lengths)
        return values

    def _distinct(self, inputs: Tensor) -> tuple[Tensor, Tensor] | None:
        """The distinct rows of X0 and which of them each position has, where all links follow from few such rows."""
        config = self.config
        if (
            config.mixer != registry.OWN
            or config.link_input != "first"
            or config.vocabulary is None
            or (self.dropout.training and self.dropout.p)
            # Only the CPU engine has anything from it, and how many there are is not known when graphs are made.
            or inputs.device.type != "cpu"
            or torch.compiler.is_compiling()
            # Who listens to the embedding wants all of its gradient from the rows of the tokens.
            or self.embedding._forward_hooks
            or self.embedding._forward_pre_hooks
        ):
            return None
        most = self._most_rows(inputs.numel())
        if self.positions is None:
            if config.vocabulary > most:
                return None
            return self.embedding(torch.arange(config.vocabulary, device=inputs.device)), inputs
        # With positions a row is known by its symbol and its place: as many as both together, if all were there.
        width = inputs.shape[1]
        if width > most or config.vocabulary * width > _SPARSE * inputs.numel():
            return None
        pairs = inputs.long() * width + torch.arange(width, device=inputs.device)
        seen = torch.zeros(config.vocabulary * width, dtype=torch.int32, device=inputs.device)
        seen[pairs] = 1
        found = seen.nonzero().flatten()
        if len(found) > most:
            return None
        numbers = seen.cumsum(0, dtype=torch.int32) - 1
        return self.embedding(found // width) + self.positions(found % width), numbers[pairs]

    def _most_rows(self, positions: int) -> int:
        """How many distinct rows may there be, so that writing links for them once saves time and costs little memory.

        What they write is kept for all factors, in the place of what a block keeps for its backward pass at most.
        """
        offsets, config = self.blocks[0].offsets, self.config
        assert isinstance(offsets, Tensor)
        kept = kept_factors(offsets.shape[0], config.keep) + 1
        return min(positions // _SHARED, positions * config.channels * kept // offsets.numel())

    def _check(self, inputs: Tensor) -> None:
        config = self.config
        if not isinstance(inputs, Tensor):
            raise TypeError(f"inputs are a {type(inputs).__name__}, expected a torch.Tensor")
        if config.vocabulary is not None:
            if inputs.dim() != 2:
                raise ValueError(f"token ids have shape {list(inputs.shape)}, expected [batch, length]")
            if inputs.dtype not in (torch.int64, torch.int32):
                raise TypeError(f"token ids are {inputs.dtype}, expected torch.int64")
        else:
            if inputs.dim() != 3 or inputs.shape[2] != config.features:
                raise ValueError(f"inputs have shape {list(inputs.shape)}, expected [batch, length, {config.features}]")
            if not inputs.is_floating_point():
                raise TypeError(f"inputs are {inputs.dtype}, expected real numbers such as torch.float32")
            own = next(self.embedding.parameters()).dtype
            if inputs.dtype != own and not autocasting(inputs):
                raise TypeError(f"inputs are {inputs.dtype}, the model's parameters are {own}; convert one of them")
        width = inputs.shape[1]
        if width < 1:
            raise ValueError("the sequences are empty; give at least one position")
        if width > config.length:
            raise ValueError(
                f"length {width} exceeds the model's {config.length}; "
                f"make the model with length={width} or cut the input"
            )

    def _checked_ids(self, inputs: Tensor) -> Tensor:
        """Token ids within the vocabulary: torch's own message for the others does not name them."""
        if self.config.vocabulary is None or torch.compiler.is_compiling() or inputs.device.type != "cpu":
            return inputs
        lowest, highest = (int(bound) for bound in inputs.aminmax()) if inputs.numel() else (0, 0)
        for token in (lowest, highest):
            if not 0 <= token < self.config.vocabulary:
                raise ValueError(f"token id {token} is outside the vocabulary, 0 to {self.config.vocabulary - 1}")
        return inputs


def blocks(config: ParamixerConfig, generator: Generator | None = None) -> list[nn.Module]:
    """The blocks of a config: Paramixer's own, or a rival's layers. All take values, inputs and lengths."""
    if config.mixer != registry.OWN:
        return registry.layers(config, generator)
    # Position 0 sees the whole sequence from the start only through a chain that reaches all of it.
    averaging = config.blocks - 1 if config.init in ("local", "even") and config.pooling == "cls" else None
    return [
        ParamixerBlock(
            config.length,
            config.channels,
            config.hidden,
            protocol=config.link_pattern(),
            residual=config.residual,
            ring=config.ring,
            dropout=config.block_dropout,
            init="average" if number == averaging else config.init,
            keep=config.keep,
            generator=generator,
        )
        for number in range(config.blocks)
    ]
