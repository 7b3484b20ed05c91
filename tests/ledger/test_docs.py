"""The page about the ledger does what it says."""

import re
from pathlib import Path

PAGE = Path(__file__).parent.parent.parent / "docs" / "ledger.md"


def test_the_snippets_run():
    snippets = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    assert len(snippets) == 1
    for snippet in snippets:
        exec(compile(snippet, str(PAGE), "exec"), {})  # its assertions are the expectations
