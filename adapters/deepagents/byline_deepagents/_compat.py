"""What the installed deepagents can do: the one place where versions are asked for."""

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from types import MappingProxyType
from typing import Final

from byline.errors import UnsupportedVersionError

__all__ = ["CAPABILITIES", "OLDEST", "check", "has", "supported"]

OLDEST: Final = (0, 7, 12)
"""The first release whose subagents know a context mode."""

BEYOND: Final = (1, 0)

CAPABILITIES: Final[Mapping[str, tuple[int, ...]]] = MappingProxyType(
    {
        "fork": (0, 7, 12),
        "mode isolated": (0, 7, 13),  # spelled out in a specification; before, "handoff"
    }
)
"""What a release brought that the stream, or how a team is described, depends on."""


def installed() -> tuple[int, ...] | None:
    """Return the version of deepagents, or `None` without one."""
    try:
        text = version("deepagents")
    except PackageNotFoundError:
        return None
    return tuple(int(part) for part in text.split(".")[:3] if part.isdigit())


def supported() -> bool:
    """Return whether the installed version is one that this adapter knows."""
    found = installed()
    return found is not None and OLDEST <= found < BEYOND


def has(capability: str) -> bool:
    """Return whether the installed version has `capability` (a key of `CAPABILITIES`)."""
    return (installed() or ()) >= CAPABILITIES[capability]


def check() -> None:
    """Raise `UnsupportedVersionError` for a deepagents outside the supported range."""
    if not supported():
        found = ".".join(map(str, installed() or ("none",)))
        raise UnsupportedVersionError(
            f"deepagents {found} is installed, byline supports 0.7.12 up to but not including 1.0: "
            "pip install 'byline[deepagents]'"
        )
