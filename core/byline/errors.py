"""What can go wrong, as one family of exceptions.

A message names the value at fault, says what was expected, and what to do about it.  Everything here is
raised *before* the user's app is called; once a run has begun, its own result and its own exceptions come
through unchanged and a fault of ours becomes a log record (see `byline.agent`).
"""

__all__ = [
    "BylineError",
    "HookError",
    "InputError",
    "NoAdapterError",
    "ResumeError",
    "StoreError",
    "UnsupportedVersionError",
]


class BylineError(Exception):
    """Base of every error that byline raises on purpose; catch this one to catch them all."""

    def __init__(self, message: str) -> None:
        if type(self) is BylineError:  # a caller should always be able to tell what kind of fault it was
            raise TypeError("BylineError is a base class: raise one of its kinds")
        super().__init__(message)


class NoAdapterError(BylineError):
    """No installed adapter takes the target that was given to `attribute`."""


class UnsupportedVersionError(BylineError):
    """An installed framework is older or newer than the adapter supports."""


class InputError(BylineError):
    """A run was asked for with an input that cannot be used: not a `RunAgentInput`, or one that contradicts itself."""


class ResumeError(InputError):
    """A `resume` entry answers an interrupt that is unknown, already answered, or that cannot be resumed."""


class HookError(BylineError):
    """A plugin's hook implementation cannot be used, or gave an answer that is none."""


class StoreError(BylineError):
    """A durable store cannot be reached, is full, or is not one: what depends on it is refused."""
