import logging
import warnings

import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # older releases import with warnings of their dependencies
    import google.adk.runners
    import google.adk.tools.authenticated_function_tool  # noqa: F401


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture(autouse=True)
def _quiet():
    # ADK logs what the scenarios provoke on purpose, and warns of its own use of its own API.
    logging.getLogger("google_adk").setLevel(logging.CRITICAL)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"google\.(adk|genai)")
        warnings.filterwarnings("ignore", message=".* is deprecated in favor of Workflow")
        warnings.filterwarnings("ignore", message=r"\[EXPERIMENTAL\]")
        yield
