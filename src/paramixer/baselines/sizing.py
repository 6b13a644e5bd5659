"""A rival of the same size: as many parameters as the model it is compared with."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from paramixer.baselines.registry import baseline
from paramixer.nn.config import ParamixerConfig

Count = Callable[[ParamixerConfig], int]
_LARGEST = 1 << 16


def matched(config: ParamixerConfig, wanted: int, count: Count) -> ParamixerConfig:
    """The config of the same rival whose number of parameters comes nearest to the wanted one.

    Fields are tried in the rival's own order, its channels last: each is brought as near as it can be, and the next is
    touched only if even the smallest value of the ones before leaves too many.

    Args:
        config: of the rival.
        wanted: the number of parameters.
        count: the number of parameters of a config.
    """
    for name in baseline(config.mixer).sized_by:
        config = _nearest(config, name, wanted, count)
        if count(config) <= 1.05 * wanted:
            return config
    narrowest = dataclasses.replace(config, channels=config.heads)
    if count(narrowest) > wanted:
        # What grows with the length alone cannot be helped.
        return config
    while count(config) > wanted:
        config = dataclasses.replace(config, channels=config.channels - config.heads)
    return _nearest(config, baseline(config.mixer).sized_by[0], wanted, count)


def _nearest(config: ParamixerConfig, name: str, wanted: int, count: Count) -> ParamixerConfig:
    """The value of one field, from 1 on, that brings the count nearest to the wanted one; it grows with the value."""

    def sized(value: int) -> ParamixerConfig:
        changed: dict[str, Any] = {name: value}
        return dataclasses.replace(config, **changed)

    low, high = 1, 2
    while high < _LARGEST and count(sized(high)) < wanted:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if count(sized(middle)) < wanted else (low, middle)
    return min((sized(low), sized(high)), key=lambda found: abs(count(found) - wanted))
