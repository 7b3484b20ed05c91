"""The options of byline's conformance suite.

A package of its own because pytest loads it for everybody who has byline installed: it must import nothing.
"""

from typing import Any

__all__ = ["pytest_addoption"]


def pytest_addoption(parser: Any) -> None:
    """Add the options of `pytest --pyargs byline.testing`."""
    group = parser.getgroup("byline", "byline's conformance suite")
    group.addoption(
        "--byline-host",
        action="append",
        default=[],
        metavar="MODULE:HOST",
        help="the host to hold to the scenarios; may be given more than once; without it, those of the installed plugins",
    )
    group.addoption(
        "--byline-limit", type=float, default=30.0, metavar="SECONDS", help="what a scenario may take"
    )
    group.addoption(
        "--byline-client",
        default=None,
        metavar="DIRECTORY",
        help="where replay.mjs and node_modules with @ag-ui/client are, for the JavaScript judge",
    )
    group.addoption(
        "--byline-report", default=None, metavar="FILE", help="write what every cell came to, as JSON"
    )
