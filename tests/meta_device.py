"""The device "meta" in place of a GPU: its tensors have no numbers, so that whatever reads one on the host raises."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

_COPIES = (torch.ops.aten._to_copy.default, torch.ops.aten.copy_.default)


class ForbidWaiting(TorchDispatchMode):
    """Raises where tensors on the CPU are copied to the device, unless the copy does not wait.

    Copies to the CPU, ``item``, ``tolist``, ``nonzero`` and the like raise by themselves.
    """

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        from_host = any(isinstance(argument, Tensor) and argument.device.type == "cpu" for argument in args)
        if func in _COPIES and from_host and result.device.type == "meta":
            waits = not ((kwargs or {}).get("non_blocking") or (func is _COPIES[1] and len(args) > 2 and args[2]))
            assert not waits, f"a copy to the device waits: {func}, {list(result.shape)}"
        return result
