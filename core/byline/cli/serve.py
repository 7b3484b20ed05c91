"""`byline serve`: an app behind an AG-UI endpoint."""

import contextlib
import logging
import socket

import click

from byline.cli._target import load
from byline.errors import BylineError

__all__ = ["serve"]


@click.command()
@click.argument("target", metavar="MODULE:TARGET")
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Where to listen; 0.0.0.0 is everywhere."
)
@click.option(
    "--port", default=8000, show_default=True, type=click.IntRange(0, 65535), help="0: any free port."
)
@click.option("--path", default="/", show_default=True, help="Where runs are posted.")
@click.option(
    "--cors", multiple=True, metavar="ORIGIN", help="An origin browsers may call from (repeatable)."
)
@click.option(
    "--grace",
    default=30.0,
    show_default=True,
    type=click.FloatRange(0),
    help="Seconds a run waits for a client that went away.",
)
@click.option(
    "--max-runs", default=1000, show_default=True, type=click.IntRange(1), help="Runs open at once."
)
@click.option(
    "--max-body", default=10_000_000, show_default=True, type=click.IntRange(1), help="Bytes of a request."
)
@click.option(
    "--store",
    metavar="URL",
    help="What several servers share, and threads are kept in: sqlite:///file.db or postgresql://...; "
    "without it, in memory.",
)
def serve(
    target: str,
    host: str,
    port: int,
    path: str,
    cors: tuple[str, ...],
    grace: float,
    max_runs: int,
    max_body: int,
    store: str | None,
) -> None:
    """Serve an app as an AG-UI agent.

    MODULE:TARGET is an existing app: a compiled graph, a deep agent, an ADK runner, or an agent made with
    attribute(); MODULE:FACTORY() calls a function that returns one.
    """
    try:
        import uvicorn
    except ModuleNotFoundError as missing:
        raise click.ClickException(
            f"serving needs {missing.name}, which is not installed: pip install 'byline[serve]'"
        ) from missing
    from byline.history import MemoryThreads
    from byline.serve import app
    from byline.stores import open_store

    try:
        shared = None if store is None else open_store(store)
        if shared is not None:
            shared.ready()
        application = app(
            load(target),
            path=path,
            cors=cors,
            grace=grace,
            max_runs=max_runs,
            max_body=max_body,
            threads=MemoryThreads() if shared is None else None,
            store=shared,
        )
    except BylineError as fault:
        raise click.ClickException(str(fault)) from fault
    runs = application.state.runs

    class Server(uvicorn.Server):
        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            # uvicorn waits for open responses before it tells the application: end them first.
            await runs.close()
            await super().shutdown(sockets)

    listening = _listen(host, port)
    config = uvicorn.Config(application, log_level="warning", timeout_graceful_shutdown=10, lifespan="on")
    bound = listening.getsockname()
    shown = f"[{bound[0]}]" if ":" in bound[0] else bound[0]
    click.echo(f"serving {target} at http://{shown}:{bound[1]}{path} (Ctrl+C ends it)")
    logging.getLogger("byline").setLevel(logging.INFO)
    with contextlib.suppress(KeyboardInterrupt):  # uvicorn raises it once more when all is ended
        Server(config).run(sockets=[listening])


def _listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens already: whoever reads our line may call at once."""
    try:
        family, kind, proto, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, proto)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen(2048)
        except OSError:
            listening.close()
            raise
    except OSError as fault:
        raise click.ClickException(
            f"cannot listen on {host} port {port}: {fault.strerror or fault}; choose another with --host or --port"
        ) from fault
    return listening
