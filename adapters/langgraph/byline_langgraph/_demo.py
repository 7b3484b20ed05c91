"""The demo: a real LangGraph supervisor with scripted models."""

from byline.hooks import Demo

__all__ = ["demo"]


def demo() -> Demo:
    """Return the LangGraph demo."""
    raise NotImplementedError
