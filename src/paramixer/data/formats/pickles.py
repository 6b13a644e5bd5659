"""The plain data inside a pickle, such as CIFAR-10's python batches, without running anything.

Python's own unpickler calls any function that a file names. Here the opcodes are only interpreted: a call becomes a
:class:`Call` that holds the name, and nothing is imported.
"""

from __future__ import annotations

import pickletools
from dataclasses import dataclass
from typing import Any

from paramixer.data.errors import DataError

_PUSHED = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_EMPTY: dict[str, type] = {"EMPTY_DICT": dict, "EMPTY_LIST": list, "EMPTY_TUPLE": tuple, "EMPTY_SET": set}
_LITERALS = (int, float, str, bytes)
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


@dataclass
class Call:
    """A call that a pickle asks for, and the state that it would give the result."""

    name: object
    arguments: object
    state: Any = None


class _Mark:
    pass


def read_pickle(data: bytes, place: str) -> Any:
    """Return the dictionaries, lists, tuples, strings and numbers of a pickle; all else is a :class:`Call`."""
    stack: list[Any] = []
    memo: dict[int, Any] = {}
    try:
        for opcode, argument, _ in pickletools.genops(data):
            if opcode.name == "STOP":
                return stack.pop()
            _apply(opcode.name, argument, stack, memo)
    except DataError:
        raise
    except Exception as error:
        raise DataError(f"not a readable pickle ({error})", place) from error
    raise DataError("the pickle has no end; is it cut off?", place)


def _apply(name: str, argument: Any, stack: list[Any], memo: dict[int, Any]) -> None:
    if name in _PUSHED:
        stack.append(_PUSHED[name])
    elif name in _EMPTY:
        stack.append(_EMPTY[name]())
    elif name == "MARK":
        stack.append(_Mark())
    elif name == "MEMOIZE":
        memo[len(memo)] = stack[-1]
    elif "PUT" in name:
        memo[int(argument)] = stack[-1]
    elif "GET" in name:
        stack.append(memo[int(argument)])
    elif name in _TUPLES:
        stack[-_TUPLES[name] :] = [tuple(stack[-_TUPLES[name] :])]
    elif name == "TUPLE":
        stack.append(tuple(_pop_to_mark(stack)))
    elif name == "LIST":
        stack.append(_pop_to_mark(stack))
    elif name == "APPEND":
        item = stack.pop()
        stack[-1].append(item)
    elif name == "APPENDS":
        items = _pop_to_mark(stack)
        stack[-1].extend(items)
    elif name == "SETITEM":
        value, key = stack.pop(), stack.pop()
        stack[-1][key] = value
    elif name == "SETITEMS":
        pairs = _pop_to_mark(stack)
        stack[-1].update(zip(pairs[::2], pairs[1::2], strict=True))
    elif name == "GLOBAL":
        stack.append(Call(argument, ()))
    elif name == "STACK_GLOBAL":
        attribute, module = stack.pop(), stack.pop()
        stack.append(Call(f"{module} {attribute}", ()))
    elif name in ("REDUCE", "NEWOBJ"):
        arguments, function = stack.pop(), stack.pop()
        stack.append(_make_call(function.name, arguments))
    elif name == "BUILD":
        state = stack.pop()
        stack[-1].state = state
    elif isinstance(argument, _LITERALS) and name not in ("PROTO", "FRAME"):
        stack.append(argument)
    elif name not in ("PROTO", "FRAME"):
        raise ValueError(f"opcode {name}")


def _make_call(name: object, arguments: Any) -> Any:
    """Return the call, or the bytes that old protocols write as text to be encoded."""
    if name == "_codecs encode" and len(arguments) == 2 and arguments[1] == "latin1":
        return arguments[0].encode("latin-1")
    if name == "__builtin__ bytes" and arguments == ():
        return b""
    return Call(name, arguments)


def _pop_to_mark(stack: list[Any]) -> list[Any]:
    for place in range(len(stack) - 1, -1, -1):
        if isinstance(stack[place], _Mark):
            items = stack[place + 1 :]
            del stack[place:]
            return items
    raise ValueError("no mark")
