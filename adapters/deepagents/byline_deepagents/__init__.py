"""byline for deepagents: what the `task` tool starts, what it inherited, and what it kept of the prompt cache."""

__all__: list[str] = []
