"""What the Triton kernels move and compute per token, head and factor, beside the least that any kernel must.

The counts follow from the kernels' loops. A test in Triton's interpreter counts every load and store and compares.
"""

from __future__ import annotations

from dataclasses import dataclass

# As in paramixer.ops.triton.chain, which needs Triton to be imported; the test compares them.
INPUT_BLOCK, HIDDEN_BLOCK = 32, 32


@dataclass(frozen=True)
class Traffic:
    """One kernel, per token and head of one factor; numbers are of float32, 4 bytes each."""

    kernel: str
    loads: int
    """Numbers of tokens that are loaded, most of them from caches."""
    stores: int
    """Numbers of tokens that are stored."""
    memory: int
    """Numbers to and from memory, if the caches hold a tile and its neighbors but nothing between two passes."""
    operations: int
    """Floating-point operations of the products, padding included."""
    useful: int
    """Floating-point operations that the equations have, each counted where it is done first."""
    parameters: int
    """Numbers of parameters that a tile loads, all its tokens together."""


def forward_traffic(inputs: int, hidden: int, channels: int, links: int) -> list[Traffic]:
    """Return the traffic of one factor's forward pass."""
    E, H, C, K = inputs, hidden, channels, links
    return [
        Traffic(
            "factor_forward",
            loads=E + C + K * C,
            stores=C,
            memory=E + 2 * C,
            operations=2 * (_blocks(E) * _pad(H) + K * _pad(H) + K * _pad(C)),
            useful=2 * (E * H + H * K + K * C),
            parameters=E * H + H + K * (H + 2),
        )
    ]


def backward_traffic(inputs: int, hidden: int, channels: int, links: int) -> list[Traffic]:
    """Return the traffic of one factor's backward pass, kernel by kernel."""
    E, H, C, K = inputs, hidden, channels, links
    HB, EB = min(_pad(H), HIDDEN_BLOCK), min(_pad(E), INPUT_BLOCK)
    passes, parts = -(-H // HB), -(-E // EB)
    wide = E > INPUT_BLOCK
    block = passes * HB
    kernels = [
        Traffic(
            "link_backward",
            loads=E + C + K * C,
            stores=2 * K,
            memory=E + 2 * C + 2 * K,
            operations=2 * (_blocks(E) * _pad(H) + K * _pad(H) + K * _pad(C)),
            useful=2 * K * C,
            parameters=E * H + H + K * (H + 2),
        ),
        Traffic(
            "mix_stored",
            loads=C + K * C + K,
            stores=C,
            memory=2 * C + K,
            operations=2 * K * _pad(C),
            useful=2 * K * C,
            parameters=K,
        ),
        Traffic(
            "mlp_backward",
            loads=passes * (E + K if wide else 3 * E + K),
            stores=H if wide else passes * E,
            memory=passes * (E + K) + H if wide else passes * (3 * E + K),
            operations=2 * block * (_blocks(E) + 2 * _pad(K) + (0 if wide else 2 * EB)),
            useful=4 * H * K + (0 if wide else 4 * E * H),
            parameters=(1 if wide else 2) * E * H + H + K * H,
        ),
    ]
    if wide:
        kernels += [
            Traffic(
                "input_backward",
                loads=parts * H + E,
                stores=E,
                memory=H + 2 * E,
                operations=2 * block * parts * EB,
                useful=2 * E * H,
                parameters=E * H,
            ),
            Traffic(
                "first_layer_backward",
                loads=parts * H + passes * E,
                stores=0,
                memory=parts * H + passes * E,
                operations=2 * block * parts * EB,
                useful=2 * E * H,
                parameters=0,
            ),
        ]
    return kernels


def least_memory(inputs: int, channels: int) -> tuple[int, int]:
    """Return the least numbers to and from memory, forward and backward.

    Forward, a factor reads the link inputs and the values and writes values. Backward, it reads both and the upstream
    gradient, adds to the gradient of the inputs and writes that of the values.
    """
    return inputs + 2 * channels, 3 * inputs + 3 * channels


def count_programs(tokens: int) -> int:
    """Return how many programs sum the gradients of parameters, each a sum of its own for one factor."""
    return max(1, min(512, -(-tokens // 64)))


def _pad(width: int) -> int:
    return max(16, 1 << (width - 1).bit_length())


def _blocks(inputs: int) -> int:
    """Return the width of link inputs in whole blocks."""
    block = min(_pad(inputs), INPUT_BLOCK)
    return -(-inputs // block) * block
