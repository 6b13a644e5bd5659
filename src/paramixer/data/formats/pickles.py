"""The plain data inside a pickle, without running anything: CIFAR-10's python batches are pickles.

Python's own unpickler calls whatever functions a file names. Here the opcodes are only looked at: a call becomes a
:class:`Call` that remembers what was named, and nothing is imported.
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
    """What a pickle would have called, with which arguments, and the state it would have given the result."""

    name: object
    arguments: object
    state: Any = None


class _Mark:
    pass


def plain(data: bytes, where: str) -> Any:
    """Dictionaries, lists, tuples, strings and numbers of a pickle; everything else as a :class:`Call`."""
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
        raise DataError(f"not a readable pickle ({error})", where) from error
    raise DataError("a pickle without an end", where)


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
        stack.append(tuple(_since_mark(stack)))
    elif name == "LIST":
        stack.append(_since_mark(stack))
    elif name == "APPEND":
        item = stack.pop()
        stack[-1].append(item)
    elif name == "APPENDS":
        items = _since_mark(stack)
        stack[-1].extend(items)
    elif name == "SETITEM":
        value, key = stack.pop(), stack.pop()
        stack[-1][key] = value
    elif name == "SETITEMS":
        pairs = _since_mark(stack)
        stack[-1].update(zip(pairs[::2], pairs[1::2], strict=True))
    elif name == "GLOBAL":
        stack.append(Call(argument, ()))
    elif name == "STACK_GLOBAL":
        attribute, module = stack.pop(), stack.pop()
        stack.append(Call(f"{module} {attribute}", ()))
    elif name in ("REDUCE", "NEWOBJ"):
        arguments, called = stack.pop(), stack.pop()
        stack.append(_called(called.name, arguments))
    elif name == "BUILD":
        state = stack.pop()
        stack[-1].state = state
    elif isinstance(argument, _LITERALS) and name not in ("PROTO", "FRAME"):
        stack.append(argument)
    elif name not in ("PROTO", "FRAME"):
        raise ValueError(f"opcode {name}")


def _called(name: object, arguments: Any) -> Any:
    """Old protocols write bytes as text that a codec is to encode; that much is understood."""
    if name == "_codecs encode" and len(arguments) == 2 and arguments[1] == "latin1":
        return arguments[0].encode("latin-1")
    if name == "__builtin__ bytes" and arguments == ():
        return b""
    return Call(name, arguments)


def _since_mark(stack: list[Any]) -> list[Any]:
    for place in range(len(stack) - 1, -1, -1):
        if isinstance(stack[place], _Mark):
            items = stack[place + 1 :]
            del stack[place:]
            return items
    raise ValueError("no mark")
