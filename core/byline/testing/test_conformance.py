"""The suite: every scenario on every host.  Run it with `pytest --pyargs byline.testing --byline-host module:Host`.

The list of scenarios is not the host's: a host that has a form takes part in every scenario of that form, and a cell
that is not as the scenario says must be declared, with a reason that names a source.
"""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from .client import ask_the_client, home, why_not
from .host import Host, find_hosts
from .judging import LIMIT, Cell, examine, takes_part
from .scenario import Scenario
from .scenarios import SCENARIOS

__all__ = [
    "parametrize",
    "pytest_generate_tests",
    "test_a_declared_cell_is_reproduced",
    "test_no_overrides_without_a_reason",
    "test_nothing_is_missing",
    "test_scenario",
    "test_the_official_client_agrees",
]

CELLS: pytest.StashKey[dict[tuple[str, str], Cell]] = pytest.StashKey()


def parametrize(metafunc: pytest.Metafunc, hosts: Sequence[Host]) -> None:
    """Give the suite's tests their hosts and scenarios."""
    if "byline_declared" in metafunc.fixturenames:
        declared = [(host, name) for host in hosts for name in host.declared]
        metafunc.parametrize(
            ("byline_host", "byline_declared"), declared, ids=[_id(h.name, n) for h, n in declared]
        )
    elif "byline_scenario" in metafunc.fixturenames:
        cells = [(host, scenario) for host in hosts for scenario in SCENARIOS if takes_part(host, scenario)]
        metafunc.parametrize(
            ("byline_host", "byline_scenario"), cells, ids=[_id(h.name, s.name) for h, s in cells]
        )
    elif "byline_host" in metafunc.fixturenames:
        metafunc.parametrize("byline_host", hosts, ids=[_id(host.name) for host in hosts])


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Take the hosts that the command names, else those of the installed plugins."""
    parametrize(metafunc, find_hosts(_option(metafunc.config, "--byline-host", ())))


@pytest.mark.filterwarnings("ignore")  # what a framework warns its users of is not the adapter's matter
def test_scenario(byline_host: Host, byline_scenario: Scenario, request: pytest.FixtureRequest) -> None:
    """The stream is legal, and every word of it belongs to whom it should."""
    limit = _option(request.config, "--byline-limit", LIMIT)
    cell = examine(byline_host, byline_scenario, limit)
    _cells(request.config)[cell.host, cell.scenario] = cell
    _report(request.config)
    if cell.status == "wrong":
        pytest.fail(f"{cell.scenario}: {byline_scenario.says}\n" + "\n".join(cell.findings), pytrace=False)
    if cell.status == "declared":
        pytest.xfail(cell.reason)


def test_no_overrides_without_a_reason(byline_host: Host) -> None:
    """A declaration names a scenario of the host's, and a source."""
    mine = {scenario.name for scenario in SCENARIOS if takes_part(byline_host, scenario)}
    wrong = [
        f"{name} is no scenario that {byline_host.name} takes part in"
        for name in byline_host.declared
        if name not in mine
    ]
    wrong += [
        f"{name} is declared without an issue, a page or a source line: {one.reason!r}"
        for name, one in byline_host.declared.items()
        if not one.names_a_source
    ]
    assert not wrong, wrong


def test_nothing_is_missing(byline_host: Host, request: pytest.FixtureRequest) -> None:
    """Every scenario of the host's forms was collected."""
    mine = {scenario.name for scenario in SCENARIOS if takes_part(byline_host, scenario)}
    assert mine, f"{byline_host.name} takes part in no scenario: its forms are {sorted(byline_host.forms)}"
    items: list[Any] = request.session.items
    collected = {
        item.callspec.params["byline_scenario"].name
        for item in items
        if "byline_scenario" in getattr(getattr(item, "callspec", None), "params", {})
        and item.callspec.params["byline_host"].name == byline_host.name
    }
    if not collected or request.config.option.keyword:
        pytest.skip("only a part of the suite was asked for")
    assert not mine - collected, f"silently missing on {byline_host.name}: {sorted(mine - collected)}"


@pytest.mark.filterwarnings("ignore")
def test_a_declared_cell_is_reproduced(byline_host: Host, byline_declared: str) -> None:
    """What a declaration says of the framework is so without byline."""
    reproduce = byline_host.declared[byline_declared].reproduce
    if reproduce is None:
        pytest.fail(
            f"{byline_declared} is declared, and `reproduce` does not show it without byline", pytrace=False
        )
    asyncio.run(asyncio.wait_for(_awaited(reproduce), LIMIT))


def test_the_official_client_agrees(byline_host: Host, request: pytest.FixtureRequest) -> None:
    """The JavaScript client makes the same messages of every stream, with the same tags."""
    directory = _client(request.config)
    if (why := why_not(directory)) is not None:
        pytest.skip(why)
    cells = [cell for (host, _), cell in _cells(request.config).items() if host == byline_host.name]
    if not cells:
        pytest.skip("no scenario was played")
    found = ask_the_client([cell for cell in cells if cell.status != "wrong"], directory)
    for cell in cells:
        if cell.scenario in found:
            cell.wrong("the JavaScript client", *found[cell.scenario])
    _report(request.config)
    assert not found, "\n".join(f"{name}: {line}" for name, lines in found.items() for line in lines)


def _id(*names: str) -> str:
    return "-".join(name.replace(" ", "_") for name in names)


def _option(config: pytest.Config, name: str, default: Any) -> Any:
    value = config.getoption(name, default=None)
    return default if value in (None, []) else value


def _client(config: pytest.Config) -> Path:
    given = _option(config, "--byline-client", None)
    return home() if given is None else Path(given)


def _cells(config: pytest.Config) -> dict[tuple[str, str], Cell]:
    return config.stash.setdefault(CELLS, {})


def _report(config: pytest.Config) -> None:
    file = _option(config, "--byline-report", None)
    if file is not None:
        cells = [
            {k: v for k, v in asdict(c).items() if k not in ("stream", "messages")}
            for c in _cells(config).values()
        ]
        Path(file).write_text(json.dumps(cells, indent=1), encoding="utf-8")


async def _awaited(reproduce: Any) -> object:
    return await reproduce()
