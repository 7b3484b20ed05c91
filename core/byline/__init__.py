"""byline: every event of a multi-agent run carries its byline."""
