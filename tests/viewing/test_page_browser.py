"""The page in a real browser: what it draws, by mouse and by keyboard, and that nothing of the stream is executed."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import chromium, console
from byline.reading import Record
from byline.render import page


def records(events: list[dict[str, Any]]) -> Iterator[Record]:
    for at, event in enumerate(events):
        yield Record(json.dumps(event).encode(), at + 1)


def big(invocations: int = 50, messages: int = 40) -> list[dict[str, Any]]:
    """A run of 10,202 events: 50 invocations that say 40 messages of five events each."""
    now = iter(range(0, 10**9, 7))
    events: list[dict[str, Any]] = [
        {"type": "RUN_STARTED", "threadId": "big", "runId": "r", "protocolVersion": "1.0"}
    ]
    for number in range(invocations):
        tag = {"subagentRunId": f"agent-{number}"}
        events.append(
            {
                "type": "SUBAGENT_STARTED",
                **tag,
                "name": f"agent {number % 5}",
                **({"parentSubagentRunId": f"agent-{number - 1}"} if number % 5 else {}),
            }
        )
        for index in range(messages):
            id_ = {"messageId": f"m-{number}-{index}"}
            events.append({"type": "TEXT_MESSAGE_START", **id_, "role": "assistant", **tag})
            words = ["one ", "two ", f"needle-{number}-{index} "]
            events += [{"type": "TEXT_MESSAGE_CONTENT", **id_, "delta": word, **tag} for word in words]
            events.append({"type": "TEXT_MESSAGE_END", **id_, **tag})
    for number in reversed(range(invocations)):
        tag = {"subagentRunId": f"agent-{number}"}
        events.append({"type": "CUSTOM", "name": "app.note", "value": number, **tag})
        events.append({"type": "STATE_SNAPSHOT", "snapshot": {"n": number}, **tag})
        events.append({"type": "SUBAGENT_FINISHED", **tag, "outcome": {"type": "success"}})
    events.append({"type": "RUN_FINISHED", "threadId": "big", "runId": "r", "outcome": {"type": "success"}})
    return [{**event, "timestamp": 1_700_000_000_000 + next(now)} for event in events]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as running:
        yield running


def shown(browser: Any) -> list[str]:
    script = (
        "return [...document.querySelectorAll('.lane:not([hidden]) > summary .name')].map(n => n.textContent)"
    )
    return browser.execute_script(script)


def count(browser: Any) -> str:
    return browser.execute_script("return document.getElementById('count').value")


def wait(browser: Any, wanted: Any) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(browser, 10).until(lambda _: wanted())


def test_a_run_of_ten_thousand_events(browser: Any, tmp_path: Path):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    events = big()
    assert len(events) == 10_202
    path = tmp_path / "big.html"
    path.write_text(page(records(events), title="big"), encoding="utf-8")
    browser.get(path.as_uri())
    painted = browser.execute_script(
        "return new Promise(done => requestAnimationFrame(() => setTimeout(() => done(performance.now()))))"
    )
    print(f"first paint after {painted:.0f} ms, page of {path.stat().st_size / 1e6:.1f} MB")
    assert painted < 2000
    assert count(browser).startswith("10,202 events, 50 invocations, nothing found against it")
    assert len(shown(browser)) == 51
    # First who worked when: all lanes are closed, under a scale, and there is no finding to go to.
    assert browser.execute_script("return document.querySelectorAll('.lane[open]').length") == 0
    scale = "return [...document.querySelectorAll('.scale span')].map(n => n.textContent)"
    assert browser.execute_script(scale) == ["0 ms", "17.9 s", "35.7 s", "53.6 s", "1 min 11 s"]
    legend = "return document.querySelector('.legend').textContent"
    assert browser.execute_script(legend) == "saysstatecustom"
    assert browser.execute_script("return document.getElementById('next').disabled")
    if folder := os.environ.get("BYLINE_SCREENSHOTS"):
        browser.save_screenshot(str(Path(folder) / "view-10k.png"))

    find = browser.find_element(By.ID, "find")
    find.send_keys("needle-7-3 ")
    wait(browser, lambda: count(browser) == "1 of 2150 items in 1 of 51 lanes")
    assert shown(browser) == ["agent 2"]
    marks = "return [...document.querySelectorAll('mark')].map(n => n.textContent)"
    assert browser.execute_script(marks) == ["needle-7-3 "]
    find.send_keys(Keys.ENTER)
    assert browser.execute_script("return document.activeElement.className") == "item k-text here"

    browser.switch_to.active_element.send_keys(Keys.ESCAPE)
    assert len(shown(browser)) == 51
    browser.find_element(By.CSS_SELECTOR, "#agent option[value='agent 3']").click()
    assert shown(browser) == ["agent 3"] * 10
    browser.find_element(By.CSS_SELECTOR, "#kind option[value='state']").click()
    wait(browser, lambda: count(browser) == "10 of 2150 items in 10 of 51 lanes")
    browser.find_element(By.CSS_SELECTOR, "#axis option[value='order']").click()
    assert browser.execute_script(scale) == ["#0", "#2550", "#5101", "#7651", "#10201"]
    assert console(browser) == []


def test_lanes_by_click_and_by_keyboard(browser: Any, tmp_path: Path):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    path = tmp_path / "small.html"
    path.write_text(page(records(big(invocations=3, messages=2)), title="small"), encoding="utf-8")
    browser.get(path.as_uri())

    def opened() -> list[bool]:
        return browser.execute_script("return [...document.querySelectorAll('.lane')].map(n => n.open)")

    def focus() -> str:
        return browser.execute_script(
            "return document.activeElement.querySelector('.name')?.textContent || document.activeElement.tagName"
        )

    def press(*keys: str) -> None:
        for key in keys:
            browser.switch_to.active_element.send_keys(key)

    assert shown(browser) == ["parent agent", "agent 0", "agent 1", "agent 2"]
    assert opened() == [False, True, True, True]  # the parent did nothing
    browser.find_elements(By.CSS_SELECTOR, ".lane > summary")[1].click()
    assert opened() == [False, False, True, True]
    press("c")
    assert opened() == [False] * 4
    press("e")
    assert opened() == [True] * 4
    browser.execute_script("document.activeElement.blur()")
    press(Keys.ARROW_DOWN)
    assert focus() == "parent agent"
    press(Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ARROW_DOWN)
    assert focus() == "agent 2"
    press(Keys.ARROW_LEFT)
    assert opened() == [True, True, True, False]
    press(Keys.ARROW_LEFT)
    assert focus() == "agent 1"  # the parent of agent 2
    press(Keys.ARROW_DOWN, Keys.ARROW_RIGHT)
    assert opened() == [True] * 4
    press("/")
    assert focus() == "INPUT"
    assert console(browser) == []


def test_findings_are_marked_and_reached(browser: Any, tmp_path: Path):
    events = big(invocations=2, messages=1)
    del events[-5]  # the end of an invocation
    path = tmp_path / "faulty.html"
    path.write_text(page(records(events), title="faulty"), encoding="utf-8")
    browser.get(path.as_uri())
    browser.execute_script("document.body.focus()")
    from selenium.webdriver.common.by import By

    browser.find_element(By.ID, "next").click()
    text = browser.execute_script("return document.activeElement.textContent")
    assert text.startswith("✗ error ")
    assert "agent-1" in text
    assert browser.execute_script("return document.querySelectorAll('.flag').length") > 0
    assert console(browser) == []


def test_what_nobody_ended_is_drawn_to_the_end(browser: Any, tmp_path: Path):
    path = tmp_path / "open.html"
    path.write_text(page(records(big(invocations=2, messages=2)[:14]), title="open"), encoding="utf-8")
    browser.get(path.as_uri())
    status = "return [...document.querySelectorAll('.lane .status')].map(n => n.textContent)"
    assert browser.execute_script(status) == ["? abandoned"] * 3
    text = browser.execute_script("return document.querySelector('table').textContent")
    assert "? abandoned" in text
    assert "91 ms" in text
    widths = "return [...document.querySelectorAll('.bar')].map(n => n.style.left + ' ' + n.style.width)"
    assert browser.execute_script(widths)[0] == "0% 100%"
    assert "NaN" not in browser.execute_script("return document.body.textContent")
    assert console(browser) == []


def test_nothing_of_the_stream_is_executed(browser: Any, tmp_path: Path):
    evil = "<img src=x onerror=\"document.title='pwned'\"></script><script>document.title='pwned'</script>"
    wire = json.dumps(big(invocations=3, messages=2)).replace("agent 1", json.dumps(evil)[1:-1])
    wire = wire.replace("one ", json.dumps(evil)[1:-1])
    path = tmp_path / "evil.html"
    path.write_text(page(records(json.loads(wire)), title=f"safe {evil}"), encoding="utf-8")
    browser.get(path.as_uri())
    assert browser.title == f"safe {evil}"
    assert shown(browser) == ["parent agent", "agent 0", evil, "agent 2"]
    assert browser.execute_script("return document.querySelectorAll('img, iframe, script').length") == 2
    assert console(browser) == []


def test_dark_and_print(tmp_path: Path):
    path = tmp_path / "small.html"
    path.write_text(page(records(big(invocations=3, messages=2)), title="small"), encoding="utf-8")
    colours = {}
    with chromium() as running:
        running.get(path.as_uri())
        for scheme in ("light", "dark"):
            running.execute_cdp_cmd(
                "Emulation.setEmulatedMedia",
                {"features": [{"name": "prefers-color-scheme", "value": scheme}]},
            )
            colours[scheme] = running.execute_script(
                "const s = getComputedStyle(document.body); return [s.backgroundColor, s.color]"
            )
            if folder := os.environ.get("BYLINE_SCREENSHOTS"):
                running.save_screenshot(str(Path(folder) / f"view-{scheme}.png"))
        printed = running.execute_cdp_cmd("Page.printToPDF", {"printBackground": False})["data"]
    assert colours == {
        "light": ["rgb(255, 255, 255)", "rgb(29, 33, 41)"],
        "dark": ["rgb(20, 23, 28)", "rgb(227, 231, 238)"],
    }
    assert len(printed) > 10_000
