"""A baseline of the same size: as many parameters as the model it is compared with."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

from paramixer.baselines.config import BaselineConfig

CountParameters = Callable[[BaselineConfig], int]
_LARGEST = 1 << 16


def match_size(
    config: BaselineConfig, size_fields: Sequence[str], target: int, count: CountParameters
) -> BaselineConfig:
    """Return the config of the same baseline whose number of parameters is nearest to the target.

    Fields are tried in their order, the channels last: each is brought as near as it can be, and the next is changed
    only if even the smallest value of those before leaves too many.

    Args:
        config: of the baseline.
        size_fields: fields that change its number of parameters.
        target: the number of parameters.
        count: returns the number of parameters of a config.
    """
    count = functools.cache(count)
    for name in size_fields:
        config = _fit_field(config, name, target, count)
        if count(config) <= 1.05 * target:
            return config
    narrowest = dataclasses.replace(config, channels=config.heads)
    if count(narrowest) > target:
        # Parameters that grow with the length alone cannot be avoided.
        return config
    while count(config) > target:
        config = dataclasses.replace(config, channels=config.channels - config.heads)
    return _fit_field(config, size_fields[0], target, count)


def _fit_field(config: BaselineConfig, name: str, target: int, count: CountParameters) -> BaselineConfig:
    """Return the config with the value of one field, from 1 on, whose count is nearest; counts grow with the value."""

    def with_value(value: int) -> BaselineConfig:
        changes: dict[str, Any] = {name: value}
        return dataclasses.replace(config, **changes)

    low, high = 1, 2
    while high < _LARGEST and count(with_value(high)) < target:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if count(with_value(middle)) < target else (low, middle)
    return min((with_value(low), with_value(high)), key=lambda candidate: abs(count(candidate) - target))
