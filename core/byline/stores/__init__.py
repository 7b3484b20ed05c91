"""Durable stores: teams, spent grants and artifacts on SQLite or PostgreSQL.

Everything works in memory without this package's extra; what is here survives the process and is shared by several
of them.  `pip install 'byline[store]'`.

>>> store = open_store("sqlite:///byline.db")                        # doctest: +SKIP
>>> Team(store.teams), Grants(keys, decider, ledger=store.grants)    # doctest: +SKIP
"""

from typing import TYPE_CHECKING, Any

from byline.errors import StoreError

if TYPE_CHECKING:
    from ._sql import SqlStore

__all__ = ["StoreError", "open_store"]


def open_store(url: str, *, timeout: float = 30.0) -> "SqlStore":
    """Return the store behind a database URL: `sqlite:///file.db` or `postgresql://user:password@host/name`.

    `timeout` is how many seconds to wait for a connection and for other writers.  Nothing is connected before the
    first use, which also brings the schema up to date; any number of first users may do so at once.

    Raises `StoreError` for a URL that is none of the two and when the extra is missing; every method of the store
    raises it when the database is down, full, or newer than this version of byline.
    """
    try:
        from ._sql import SqlStore
    except ModuleNotFoundError as missing:
        raise StoreError(
            f"a durable store needs {missing.name}, which is not installed: pip install 'byline[store]'"
        ) from missing
    return SqlStore(url, timeout=timeout)


def __getattr__(name: str) -> Any:
    if name == "SqlStore":
        from ._sql import SqlStore

        return SqlStore
    raise AttributeError(name)
