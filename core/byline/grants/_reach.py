"""What code holds: where a function, a method or a container leads to."""

import functools
import inspect
from collections.abc import Mapping
from typing import Any

__all__ = ["held"]


def held(one: Any) -> list[Any] | None:
    """Return what `one` holds, or `None` for what is neither code nor a plain container.

    Of a function: its closure cells, the globals that it names, its defaults; of a bound method or a partial, its
    parts.
    """
    if inspect.isfunction(one):
        variables = inspect.getclosurevars(one)
        wrapped = getattr(one, "__wrapped__", None)
        return [
            *variables.nonlocals.values(),
            *variables.globals.values(),
            *(one.__defaults__ or ()),
            wrapped,
        ]
    if inspect.ismethod(one):
        return [one.__func__, one.__self__]
    if isinstance(one, functools.partial):
        return [one.func, *one.args, *one.keywords.values()]
    if inspect.ismodule(one):
        return []
    if isinstance(one, Mapping):
        return list(one.values())
    if isinstance(one, list | tuple | set | frozenset):
        return list(one)
    return None
