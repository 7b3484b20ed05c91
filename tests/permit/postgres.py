"""A PostgreSQL cluster of our own, on loopback, for as long as the tests run.

The server refuses to run as root, so there it runs as another user, in a directory that this user can reach: one of
its own directly under the temporary folder.
"""

import os
import pwd
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

__all__ = ["Cluster", "binaries"]


def binaries() -> Path | None:
    """Return the folder of the newest server's programs, or nothing when there is none."""
    packaged = Path("/usr/lib/postgresql").glob("*/bin")
    homes = sorted(packaged, key=lambda home: int(home.parent.name.split(".")[0]), reverse=True)
    if (on_path := shutil.which("initdb")) is not None:
        homes.append(Path(on_path).resolve().parent)
    return next((home for home in homes if (home / "initdb").exists() and (home / "postgres").exists()), None)


def somebody_else() -> dict[str, object]:
    """Return the arguments that let a subprocess run as a user other than root."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    raise RuntimeError(
        "PostgreSQL does not run as root, and there is no user postgres or nobody to run it as"
    )


class Cluster:
    def __init__(self, home: Path) -> None:
        self.password = secrets.token_urlsafe(12)
        self.folder = Path(tempfile.mkdtemp(prefix="byline-pg-"))
        self._home = home
        self._as = somebody_else()
        if self._as:
            os.chown(self.folder, self._as["user"], self._as["group"])
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self._server: subprocess.Popen | None = None
        self._databases = 0

    def start(self) -> "Cluster":
        secret = self.folder / "password"
        secret.write_text(self.password)
        if self._as:
            os.chown(secret, self._as["user"], self._as["group"])
        data = self.folder / "data"
        self._run(
            "initdb", "-D", data, "-U", "byline", "-A", "scram-sha-256", f"--pwfile={secret}",
            "--locale=C", "-E", "UTF8", "--no-sync",
        )  # fmt: skip
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": self.port,
            "unix_socket_directories": "",
            "max_connections": 200,
            "fsync": "off",
        }
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        with (self.folder / "log").open("wb") as log:
            self._server = subprocess.Popen(
                [self._home / "postgres", "-D", data, *options],
                stdout=log,
                stderr=log,
                cwd=self.folder,
                **self._as,
            )
        self._wait()
        return self

    def _run(self, program: str, *arguments: object) -> None:
        done = subprocess.run(
            [self._home / program, *map(str, arguments)],
            cwd=self.folder,
            capture_output=True,
            text=True,
            **self._as,
        )
        if done.returncode:
            raise RuntimeError(f"{program} failed: {done.stderr}")

    def _wait(self) -> None:
        import psycopg

        until = time.monotonic() + 30
        while True:
            try:
                psycopg.connect(self.url("postgres").replace("postgresql+psycopg", "postgresql")).close()
                return
            except psycopg.OperationalError:
                if time.monotonic() > until or self._server.poll() is not None:
                    raise RuntimeError((self.folder / "log").read_text()) from None
                time.sleep(0.05)

    def url(self, database: str) -> str:
        return f"postgresql+psycopg://byline:{self.password}@127.0.0.1:{self.port}/{database}"

    def new_database(self) -> str:
        """Return the URL of an empty database."""
        import psycopg

        self._databases += 1
        name = f"byline_{self._databases}"
        address = self.url("postgres").replace("postgresql+psycopg", "postgresql")
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def version(self) -> str:
        return subprocess.run(
            [self._home / "postgres", "--version"], capture_output=True, text=True
        ).stdout.strip()

    def stop(self) -> None:
        if self._server is not None:
            self._server.send_signal(2)  # SIGINT: the "fast" shutdown
            self._server.wait(timeout=30)
        shutil.rmtree(self.folder, ignore_errors=True)
