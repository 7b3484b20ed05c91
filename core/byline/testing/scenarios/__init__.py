"""All scenarios."""

from typing import Final

from byline.testing.scenario import Scenario

from .calls import CALLS
from .content import CONTENT
from .endings import ENDINGS
from .graphs import GRAPHS

__all__ = ["SCENARIOS"]

SCENARIOS: Final[tuple[Scenario, ...]] = (*CALLS, *CONTENT, *ENDINGS, *GRAPHS)
