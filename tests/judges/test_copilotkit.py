"""The CopilotKit front end of `examples/copilotkit`, in a browser: what people see of the demo team."""

import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from browser import chromium
from byline.history import MemoryThreads, Part
from serving_kit import Served, served

FRONT = os.environ.get("BYLINE_COPILOTKIT", "")
"""A copy of `examples/copilotkit` in which `npm install` was run."""

MESSAGES = (
    "return [...document.querySelectorAll('[data-author]')].map(n => [n.dataset.author, n.innerText.trim()])"
)

LAST = ["parent agent", "editor: the lighthouse was struck by lightning in 1911, and the story is out."]


class Kept(MemoryThreads):
    """What the team did, whoever saw it."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def append(self, part: Part) -> None:
        self.lines += part.lines.splitlines()

    def last(self) -> dict[str, Any]:
        return json.loads(self.lines[-1])


@pytest.fixture(scope="module")
def kept() -> Kept:
    return Kept()


@pytest.fixture(scope="module")
def team(kept: Kept) -> Iterator[Served]:
    from byline_langgraph._demo import build

    with served(build(0.2), grace=0, threads=kept) as server:
        yield server


@pytest.fixture(scope="module")
def front(team: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    node = shutil.which("node")
    if node is None or not FRONT:
        pytest.skip(
            "needs node, and BYLINE_COPILOTKIT: a copy of examples/copilotkit in which npm install was run"
        )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    vite = Path("node_modules", "vite", "bin", "vite.js")
    log = tmp_path_factory.mktemp("front") / "vite.log"
    with log.open("w") as out:
        process = subprocess.Popen(
            [node, str(vite), "--host", "127.0.0.1", "--port", str(port), "--strictPort"],
            cwd=FRONT,
            env={**os.environ, "BYLINE_URL": f"{team.url}/", "COPILOTKIT_TELEMETRY_DISABLED": "true"},
            stdout=out,
            stderr=subprocess.STDOUT,
        )
        try:
            address = f"http://127.0.0.1:{port}"
            for _ in range(600):
                try:
                    httpx.get(f"{address}/api/copilotkit/info", trust_env=False).raise_for_status()
                    break
                except httpx.HTTPError:
                    assert process.poll() is None, log.read_text()
                    time.sleep(0.1)
            yield address
        finally:
            process.terminate()
            process.wait(20)


@pytest.fixture
def page(front: str) -> Iterator[Any]:
    with chromium() as browser:
        browser.set_page_load_timeout(100)  # at its first start Vite bundles the dependencies
        browser.get(front)
        yield browser


def until(page: Any, wanted: Any) -> Any:
    from selenium.common.exceptions import NoSuchElementException, StaleElementReferenceException
    from selenium.webdriver.support.ui import WebDriverWait

    changing = (NoSuchElementException, StaleElementReferenceException)
    return WebDriverWait(page, 30, ignored_exceptions=changing).until(lambda _: wanted())


def say(page: Any, words: str) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    def typed() -> bool:
        """The chat renews its box once it has found its runtime, and then takes a message."""
        page.find_element(By.TAG_NAME, "textarea").send_keys(words)
        time.sleep(1)
        return page.find_element(By.TAG_NAME, "textarea").get_attribute("value") == words

    until(page, typed)
    page.find_element(By.TAG_NAME, "textarea").send_keys(Keys.ENTER)


def shown(page: Any) -> list[list[str]]:
    """The messages: who is named above each, and what it says, in the order of the page."""
    return page.execute_script(MESSAGES)


@pytest.mark.timeout(240)
def test_a_chat_names_the_subagents_and_asks_for_approval(page: Any):
    from selenium.webdriver.common.by import By

    say(page, "What happened to the old lighthouse? Publish what you find.")
    [ask] = until(page, lambda: page.find_elements(By.CSS_SELECTOR, "[aria-label=approval]"))
    assert ask.text == "May I publish 'Struck by lightning'?\nYes No"
    # Two speak at once, and who is first is a matter of chance.
    assert sorted(shown(page)) == [
        ["archivist", "archivist · done\n\narchivist: the log of 1911 says it was struck by lightning."],
        [
            "parent agent",
            "editor: two of us will see to it.\n\nask_researcher\nDone\nask_publisher\nRunning",
        ],
        ["publisher", "publisher · waits for you\n\npublisher: this one needs a yes.\n\npublish\nRunning"],
        ["researcher", "researcher · done\n\nresearcher: lightning, in 1911; the keeper's log confirms it."],
        ["researcher", "researcher · done\nask_archivist\nDone"],
    ]
    if folder := os.environ.get("BYLINE_SCREENSHOTS"):
        page.save_screenshot(str(Path(folder) / "copilotkit.png"))
    ask.find_element(By.TAG_NAME, "button").click()
    until(page, lambda: shown(page)[-1] == LAST)
    assert shown(page)[-2] == ["publisher", "publisher · done\n\npublisher: it is out."]
    assert len(shown(page)) == 7
    assert page.find_elements(By.CSS_SELECTOR, "[aria-label=approval]") == []


@pytest.mark.timeout(120)
def test_stop_stops_the_team(page: Any, team: Served, kept: Kept):
    from selenium.webdriver.common.by import By

    say(page, "go")
    until(page, lambda: len(shown(page)) > 1)
    assert team.tasks() != []
    page.find_element(By.CSS_SELECTOR, "[data-testid=copilot-send-button]").click()
    until(page, lambda: team.tasks() == [])
    assert kept.last()["outcome"] == {"type": "cancelled"}
    until(page, lambda: "publisher · stopped" in str(shown(page)))
    say(page, "again")  # the thread is free
    until(page, lambda: shown(page)[-1] == LAST)
    assert "HTTP 409" not in page.execute_script("return document.body.innerText")
