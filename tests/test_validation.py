from __future__ import annotations

import dataclasses
import re
from typing import Annotated, Literal

import numpy as np
import pytest
from pydantic import Field, model_validator

from paramixer.validation import Count, Integer, Positive, Probability, settings


@settings
class Base:
    count: Count
    number: Integer = 0

    @model_validator(mode="after")
    def _check_base(self) -> Base:
        if self.number > self.count:
            raise ValueError(f"number={self.number}; it must be at most count={self.count}")
        return self


@settings
class Example(Base):
    share: Probability = 0.0
    rate: Positive | None = None
    kind: Literal["one", "two", "three"] = "one"
    flag: bool = False
    factors: dict[str, Annotated[float, Field(le=9)]] | None = None

    @model_validator(mode="after")
    def _check_example(self) -> Example:
        if self.flag and self.rate is None:
            raise ValueError("flag=True needs a rate; give one")
        return self


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"count": 0}, "count=0; it must be at least 1"),
        ({"count": True}, "count=True; it must be a whole number"),
        ({"count": 2.0}, "count=2.0; it must be a whole number"),
        ({"count": None}, "count=None; it must be a whole number"),
        ({"share": 1}, "share=1; it must be less than 1"),
        ({"share": -0.5}, "share=-0.5; it must be at least 0"),
        ({"rate": 0}, "rate=0; it must be greater than 0"),
        ({"rate": float("inf")}, "rate=inf; it must be a finite number"),
        ({"kind": "four"}, "kind='four'; it must be one of one, two, three"),
        ({"flag": "yes"}, "flag='yes'; it must be true or false"),
        ({"factors": 3}, "factors=3; it must be a mapping"),
        ({"factors": {"a": 10.0}}, "factors.a=10.0; it must be at most 9"),
        ({"factors": {"a": "x"}}, "factors.a='x'; it must be a number"),
        ({"number": 4}, "number=4; it must be at most count=3"),
        ({"flag": True}, "flag=True needs a rate; give one"),
        ({"rates": 1.0}, "there is no setting 'rates'; did you mean 'rate'?"),
        ({"zzz": 1.0}, "there is no setting 'zzz'"),
    ],
)
def test_errors_are_one_line_with_field_value_and_remedy(values, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        Example(**{"count": 3} | values)


def test_a_missing_value_is_named():
    with pytest.raises(ValueError, match="^count is missing; give it a value$"):
        Example()


def test_settings_are_frozen_dataclasses():
    example = Example(count=np.int32(3), share=0)
    assert type(example.count) is int
    assert dataclasses.asdict(dataclasses.replace(example, kind="two"))["kind"] == "two"
    assert example == Example(count=3)
    assert hash(Base(count=3)) == hash(Base(count=3))
    with pytest.raises(dataclasses.FrozenInstanceError):
        example.count = 4
    with pytest.raises(TypeError):
        Example(3)
    with pytest.raises(ValueError, match="count=0"):
        dataclasses.replace(example, count=0)
