"""Settings as frozen dataclasses that pydantic validates, with errors of one line: field, value, what is allowed."""

from __future__ import annotations

import difflib
import functools
import operator
from collections.abc import Callable
from typing import Annotated, Any, TypeVar, dataclass_transform

import pydantic.dataclasses
from pydantic import BeforeValidator, ConfigDict, Field, ValidationError

T = TypeVar("T", bound=type)
_STRICT = ConfigDict(strict=True, extra="forbid")


def _to_int(value: object) -> object:
    """Return numpy's whole numbers as Python's, which JSON knows; anything else unchanged."""
    if isinstance(value, bool | int) or not hasattr(value, "__index__"):
        return value
    return operator.index(value)


Integer = Annotated[int, BeforeValidator(_to_int)]
"""A whole number, Python's or numpy's; a bool is none."""
Count = Annotated[int, BeforeValidator(_to_int), Field(ge=1)]
"""A whole number of at least 1."""
Probability = Annotated[float, Field(ge=0, lt=1)]
"""A number from 0 up to, but not including, 1."""
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
"""A positive finite number."""

_KINDS = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "string_type": "a text",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "a mapping",
    "mapping_type": "a mapping",
}
_BOUNDS = {
    "greater_than_equal": ("ge", "at least"),
    "greater_than": ("gt", "greater than"),
    "less_than_equal": ("le", "at most"),
    "less_than": ("lt", "less than"),
}


@dataclass_transform(frozen_default=True, kw_only_default=True)
def settings(cls: T) -> T:
    """Turn a class of annotated fields into a frozen, keyword-only dataclass whose fields are validated.

    Types are strict. Constraints stand in the annotations (:data:`Count`, :data:`Probability`, ``Field(...)``), checks
    across fields in a method with ``@pydantic.model_validator(mode="after")``. What is wrong raises a ValueError of
    one line. ``dataclasses.replace``, ``asdict`` and ``fields`` work as for any dataclass.
    """
    validated: Any = pydantic.dataclasses.dataclass(frozen=True, kw_only=True, config=_STRICT)(cls)
    validated.__init__ = _with_one_line_errors(validated.__init__, validated)
    return validated  # type: ignore[no-any-return]


def describe_error(error: ValidationError, known: tuple[str, ...] = ()) -> str:
    """Return pydantic's first error as one line such as ``batch=0; it must be at least 1``.

    Args:
        error: what pydantic raised.
        known: names of all settings, for a suggestion where one is unknown.
    """
    first = error.errors(include_url=False)[0]
    name = ".".join(str(part) for part in first["loc"])
    kind, value, context = first["type"], first["input"], first.get("ctx", {})
    if kind == "value_error":
        # Raised by a check of ours, which names what it is about.
        return str(context["error"])
    if kind in ("missing", "missing_keyword_only_argument"):
        return f"{name} is missing; give it a value"
    if kind in ("unexpected_keyword_argument", "extra_forbidden"):
        close = difflib.get_close_matches(name, known, 1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        return f"there is no setting {name!r}{hint}"
    if kind in _KINDS:
        allowed = f"it must be {_KINDS[kind]}"
    elif kind in _BOUNDS:
        bound, words = _BOUNDS[kind]
        allowed = f"it must be {words} {context[bound]:g}"
    elif kind == "literal_error":
        allowed = "it must be one of " + context["expected"].replace("'", "").replace(" or ", ", ")
    else:
        allowed = first["msg"]
    return f"{name}={value!r}; {allowed}"


def _with_one_line_errors(init: Callable[..., None], cls: Any) -> Callable[..., None]:
    @functools.wraps(init)
    def validating(self: Any, **values: Any) -> None:
        try:
            init(self, **values)
        except ValidationError as error:
            raise ValueError(describe_error(error, tuple(cls.__dataclass_fields__))) from None

    return validating
