"""byline for LangGraph: existing graphs as sources of attributed AG-UI events."""

__all__: list[str] = []
