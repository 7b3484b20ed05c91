"""The client's own tools: offered to the model for one run, answered by the client with its next.

The one plugin that changes a request; it is only there after a run has brought tools.
"""

from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any, Final

from byline.events import Tool
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.base_tool import BaseTool
from google.genai import types

from ._identity import HERE, Kind

__all__ = ["OFFERED", "ClientTools", "is_client_tool", "offer"]

OFFERED: Final[ContextVar[Sequence[Tool]]] = ContextVar("byline_adk_offered", default=())


class _ClientTool(BaseTool):  # type: ignore[misc,unused-ignore]
    """Declared to the model, executed by nobody here: a long-running call that the client answers."""

    def __init__(self, tool: Tool) -> None:
        super().__init__(name=tool.name, description=tool.description, is_long_running=True)
        self._parameters: Final = tool.parameters

    def _get_declaration(self) -> types.FunctionDeclaration:
        return types.FunctionDeclaration(
            name=self.name, description=self.description, parameters_json_schema=self._parameters or None
        )

    async def run_async(self, *, args: dict[str, Any], tool_context: Any) -> Any:
        """Return nothing: the answer comes from outside."""
        return


class ClientTools(BasePlugin):  # type: ignore[misc,unused-ignore]
    """Offers the client's tools to whoever talks with the user: the root and chat agents."""

    def __init__(self) -> None:
        super().__init__(name="byline_client_tools")

    async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> None:
        """Add the tools that the model does not know yet."""
        here = HERE.get()
        if here is None or here.kind not in (Kind.ROOT, Kind.CHAT):
            return
        new = [_ClientTool(tool) for tool in OFFERED.get() if tool.name not in llm_request.tools_dict]
        if new:
            llm_request.append_tools(new)


def offer(runner: Any) -> None:
    """Add the plugin to a runner that has none."""
    plugins = runner.plugin_manager.plugins
    if not any(type(plugin) is ClientTools for plugin in plugins):
        plugins.append(ClientTools())


def is_client_tool(tool: object) -> bool:
    """Return whether a tool is the client's own."""
    return isinstance(tool, _ClientTool)
