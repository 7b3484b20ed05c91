"""`MODULE:TARGET` on a command line."""

import importlib
import inspect
import sys
from typing import Any

import click

__all__ = ["load"]


def load(name: str) -> Any:
    """Return what `module:target` names, imported as `python -m` would from this folder."""
    module_name, _, path = name.partition(":")
    if not module_name or not path:
        raise click.UsageError(
            f"{name!r} names no target: expected MODULE:TARGET, as in shop.agents:supervisor"
        )
    if module_name.endswith(".py") or "/" in module_name:
        dotted = module_name.removesuffix(".py").strip("./").replace("/", ".")
        raise click.UsageError(f"{name!r} names a file: expected a module, {dotted}:{path} say")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as missing:
        if missing.name and (module_name == missing.name or module_name.startswith(missing.name + ".")):
            raise click.ClickException(
                f"there is no module {missing.name!r}: run this in the folder that holds it, or install it"
            ) from missing
        raise click.ClickException(
            f"module {module_name!r} cannot be imported: it needs {missing.name!r}, which is not installed"
        ) from missing
    except (Exception, SystemExit) as fault:  # a script may end the process where it is imported
        raise click.ClickException(
            f"module {module_name!r} cannot be imported: {type(fault).__name__}: {fault}"
        ) from fault
    called = path.endswith("()")
    for part in path.removesuffix("()").split("."):
        try:
            found = getattr(found, part)
        except AttributeError as missing_part:
            raise click.ClickException(f"module {module_name!r} has no {path!r}") from missing_part
    if not called:
        return found
    try:
        made = found()
    except (Exception, SystemExit) as fault:
        raise click.ClickException(f"{name} failed: {type(fault).__name__}: {fault}") from fault
    if inspect.iscoroutine(made):
        made.close()
        raise click.ClickException(f"{name} is an async function: expected one that returns the app itself")
    return made
