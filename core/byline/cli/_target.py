"""`MODULE:TARGET` on a command line."""

import importlib
import sys
from typing import Any

import click

__all__ = ["load"]


def load(name: str) -> Any:
    """Return what `module:target` names, imported as `python -m` would from this folder; `target()` is called.

    Raises a click error that says what is missing.
    """
    module, _, path = name.partition(":")
    if not module or not path:
        raise click.UsageError(f"{name!r} names no target: expected MODULE:TARGET, as in shop.agents:team")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        found: Any = importlib.import_module(module)
    except Exception as fault:
        raise click.ClickException(
            f"{module!r} cannot be imported: {type(fault).__name__}: {fault}"
        ) from fault
    for part in path.removesuffix("()").split("."):
        if not hasattr(found, part):
            raise click.ClickException(
                f"{module!r} has no {path.removesuffix('()')!r}: {part!r} is not there"
            )
        found = getattr(found, part)
    if not path.endswith("()"):
        return found
    try:
        return found()
    except Exception as fault:
        raise click.ClickException(f"{name} failed: {type(fault).__name__}: {fault}") from fault
