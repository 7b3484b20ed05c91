import logging

import pytest


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture(autouse=True)
def _quiet():
    # ADK logs what the scenarios provoke on purpose.
    logging.getLogger("google_adk").setLevel(logging.CRITICAL)
