"""The databases of these tests: SQLite always, PostgreSQL where a server is installed."""

import pytest

from . import postgres

_happened: list[str] = []
_WHY_NOT = "PostgreSQL: not tested, no server programs are installed (apt-get install -y postgresql)"


@pytest.fixture(scope="session")
def cluster():
    pytest.importorskip("psycopg")
    home = postgres.binaries()
    if home is None:
        _happened.append(_WHY_NOT)
        pytest.skip(_WHY_NOT)
    cluster = postgres.Cluster(home)
    try:
        cluster.start()
        _happened.append(f"PostgreSQL: tested on a cluster of its own, {cluster.version()}")
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    """The URL of an empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'byline.db'}"
    return request.getfixturevalue("cluster").new_database()


def pytest_terminal_summary(terminalreporter):
    for line in dict.fromkeys(_happened):
        terminalreporter.write_line(line)
