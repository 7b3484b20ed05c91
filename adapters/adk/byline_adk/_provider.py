"""Who provides a model: ADK's models name themselves, not their provider."""

from types import MappingProxyType
from typing import Any, Final

from google.adk.models.registry import LLMRegistry

__all__ = ["provider_of"]

_KNOWN: Final = MappingProxyType({"Gemini": "google", "AnthropicLlm": "anthropic", "ApigeeLlm": None})
"""By the name of a class of ADK's, so that no optional package is imported.  Apigee is a gateway: it may lead anywhere."""


def provider_of(agent: Any, model: str | None) -> str | None:
    """Return the provider of the model that an agent asks by the name of `model`; `None` where nothing tells it.

    A model of the app's own says it with an attribute `provider`.
    """
    own = None
    while agent is not None and not own:  # an agent without a model has that of the agent above it
        own, agent = getattr(agent, "model", None), getattr(agent, "parent_agent", None)
    said = getattr(own, "provider", None)
    if isinstance(said, str) and said:
        return said
    kind = type(own)
    if own is None or isinstance(own, str):
        try:
            kind = LLMRegistry.resolve(own or model or "")
        except (ValueError, ImportError):  # it says so itself when the model is asked
            return None
    for base in kind.__mro__:
        if base.__name__ == "LiteLlm":
            return _route(own, own if isinstance(own, str) else getattr(own, "model", ""))
        if base.__name__ in _KNOWN:
            return _KNOWN[base.__name__]
    return None


def _route(own: Any, name: str) -> str | None:
    """Return LiteLLM's name of a provider: the argument for it, or what stands before the model's name."""
    given = (getattr(own, "_additional_args", None) or {}).get("custom_llm_provider")
    if isinstance(given, str) and given:
        return given
    before, slash, _ = name.partition("/")
    return before if slash and before else None
