"""S4D: a diagonal state space for every channel, run as a convolution by FFT, in both directions."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from paramixer.baselines.config import BaselineConfig


class S4D(nn.Module):
    """States start at S4D-Lin's eigenvalues, -1/2 + i pi n, with step sizes from 0.001 to 0.1; then GELU and a gate."""

    def __init__(self, config: BaselineConfig) -> None:
        super().__init__()
        channels, states = config.channels, config.rank or 32
        steps = torch.rand(channels) * (math.log(0.1) - math.log(0.001)) + math.log(0.001)
        self.log_step = nn.Parameter(steps)
        self.log_decay = nn.Parameter(torch.full((channels, states), math.log(0.5)))
        self.frequency = nn.Parameter(math.pi * torch.arange(states).expand(channels, -1).clone())
        # Both directions, real and imaginary parts.
        self.readout = nn.Parameter(torch.randn(2, channels, states, 2) * math.sqrt(0.5))
        self.direct = nn.Parameter(torch.randn(channels))
        self.to_out = nn.Linear(channels, 2 * channels)

    def compute_kernels(self, length: int) -> Tensor:
        """Return the convolution kernel of each direction and channel, ``[2, channels, length]``."""
        step = self.log_step.float().exp()[:, None]
        rate = torch.complex(-self.log_decay.float().exp(), self.frequency.float())
        # Zero-order hold: the input is constant during a step.
        readout = torch.view_as_complex(self.readout.float().contiguous()) * ((rate * step).exp() - 1) / rate
        powers = ((rate * step)[..., None] * torch.arange(length, device=rate.device)).exp()
        return 2 * torch.einsum("dcn,cnl->dcl", readout, powers).real

    def forward(self, inputs: Tensor, valid: Tensor | None) -> Tensor:
        """Return mixed values, see :class:`~.layer.Attention`. Zeros past the end do not change the states."""
        length = inputs.shape[1]
        values = inputs.transpose(1, 2)
        with torch.autocast(inputs.device.type, enabled=False):
            forward, backward = self.compute_kernels(length)
            spectrum = torch.fft.rfft(values.float(), 2 * length) * torch.fft.rfft(_circular(forward, backward))
            mixed = torch.fft.irfft(spectrum, 2 * length)[..., :length] + self.direct[:, None] * values.float()
        out: Tensor = F.glu(self.to_out(F.gelu(mixed.to(inputs.dtype)).transpose(1, 2)))
        return out


def _circular(forward: Tensor, backward: Tensor) -> Tensor:
    """Return both directions as one circular kernel of 2N: lags 0 to N - 1, a gap, then lags -(N - 1) to -1."""
    length = forward.shape[-1]
    return torch.cat([forward, torch.zeros_like(forward[..., :1]), backward[..., : length - 1].flip(-1)], -1)
