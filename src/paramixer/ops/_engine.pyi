from torch import Tensor

def link_mix(
    weights: Tensor, values: Tensor, offsets: Tensor, lengths: Tensor | None, ring: bool, out: Tensor
) -> None: ...
def link_mix_backward(
    grad: Tensor,
    weights: Tensor,
    values: Tensor,
    offsets: Tensor,
    lengths: Tensor | None,
    ring: bool,
    dweights: Tensor,
    dvalues: Tensor,
) -> None: ...
def paramix(
    inputs: Tensor,
    values: Tensor,
    w1: Tensor,
    b1: Tensor,
    w2: Tensor,
    b2: Tensor,
    offsets: Tensor,
    lengths: Tensor | None,
    residual: str,
    ring: bool,
    keep: int,
    out: Tensor,
    kept: Tensor | None,
) -> None: ...
def paramix_backward(
    grad: Tensor,
    inputs: Tensor,
    values: Tensor,
    w1: Tensor,
    b1: Tensor,
    w2: Tensor,
    b2: Tensor,
    offsets: Tensor,
    lengths: Tensor | None,
    residual: str,
    ring: bool,
    keep: int,
    kept: Tensor | None,
    dinputs: Tensor,
    dvalues: Tensor,
    dw1: Tensor,
    db1: Tensor,
    dw2: Tensor,
    db2: Tensor,
) -> None: ...
def dropout(values: Tensor, p: float, seed: int, out: Tensor) -> None: ...
def instruction_sets() -> dict[str, bool]: ...
def instruction_set() -> str: ...
def use_instruction_set(name: str) -> None: ...
