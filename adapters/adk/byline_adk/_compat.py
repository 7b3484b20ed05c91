"""What the installed ADK can do: the one place where versions are asked for."""

from functools import cache
from importlib import metadata
from types import MappingProxyType
from typing import Final

from byline.errors import UnsupportedVersionError

__all__ = ["CAPABILITIES", "OLDEST", "can", "check", "installed"]

OLDEST: Final = (2, 6)
"""The first release whose partial events share the id of their aggregate and whose branches name the call."""

BEYOND: Final = (3, 0)

version: Final = cache(metadata.version)
"""Asked for in every run; to find the answer takes a millisecond, as long as six words of a model."""

CAPABILITIES: Final = MappingProxyType(
    {
        # capability                 first version that has it
        "mixed_turn": (2, 7),  #     a task delegated beside other calls of one model turn
        "task_root": (2, 7),  #      a root agent in task mode
        "shared_actions": (2, 7),  # a model run's events share one `actions` object with its callback context
        "node_path": (2, 10),  #     callbacks know the path of their node
        "abort": (2, 11),  #         run_async(abort_signal=...)
        "nested_task": (2, 12),  #   a task agent delegates on
        "remote_resume": (2, 12),  # an answer reaches the remote agent that asked, and not the root
        "approval": (2, 13),  #      a confirmation inside a single_turn agent resumes through its caller
    }
)


def installed() -> tuple[int, int]:
    """Return major and minor version of the installed google-adk."""
    major, minor = version("google-adk").split(".")[:2]
    return int(major), int(minor)


def can(capability: str) -> bool:
    """Return whether the installed version has `capability`; `KeyError` for one that is not in the table."""
    return installed() >= CAPABILITIES[capability]


def check() -> None:
    """Raise `UnsupportedVersionError` for an ADK outside the supported range."""
    if not OLDEST <= installed() < BEYOND:
        raise UnsupportedVersionError(
            f"google-adk {version('google-adk')} is installed, byline supports 2.6 up to but not including 3.0: "
            "pip install 'byline[adk]'"
        )
