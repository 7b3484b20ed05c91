"""What the installed LangGraph can do: the one place where versions are asked for."""

from importlib.metadata import version
from typing import Final

from byline.errors import UnsupportedVersionError

__all__ = ["OLDEST", "check"]

OLDEST: Final = (1, 1)
"""The first release whose stream has `version="v2"` parts with a namespace and the interrupts of a step."""

BEYOND: Final = (2, 0)


def check() -> None:
    """Raise `UnsupportedVersionError` for a LangGraph outside the supported range."""
    installed = version("langgraph")
    numbers = tuple(int(part) for part in installed.split(".")[:2])
    if not OLDEST <= numbers < BEYOND:
        raise UnsupportedVersionError(
            f"langgraph {installed} is installed, byline supports 1.1 up to but not including 2.0: "
            "pip install 'byline[langgraph]'"
        )
