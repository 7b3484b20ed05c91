"""What is run over this project.  `nox` alone runs what has to pass before anything lands."""

import nox

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.sessions = ["lint", "types", "contracts", "tests"]
nox.options.reuse_existing_virtualenvs = True
nox.options.error_on_missing_interpreters = False

PYPROJECT = nox.project.load_toml("pyproject.toml")


def groups(*names: str) -> list[str]:
    return nox.project.dependency_groups(PYPROJECT, *names)


@nox.session
def lint(session: nox.Session) -> None:
    """Style, and what ruff takes for mistakes."""
    session.install(*groups("lint"))
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")


@nox.session
def types(session: nox.Session) -> None:
    """Strict types over all packages."""
    session.install("-e", ".[all]", *groups("lint", "langgraph-test"))
    session.run("mypy")


@nox.session
def contracts(session: nox.Session) -> None:
    """The direction of the imports: the core knows no framework, the law no edge."""
    session.install("-e", ".[all]", *groups("lint"))
    session.run("lint-imports")


@nox.session
def tests(session: nox.Session) -> None:
    """All tests, on the newest frameworks."""
    session.install("-e", ".[all]", *groups("test", "langgraph-test", "serve-test"))
    session.run("pytest", *session.posargs)


@nox.session
def judges(session: nox.Session) -> None:
    """The official JavaScript client against a running endpoint; needs node and npm."""
    session.install("-e", ".[all]", *groups("test", "langgraph-test", "serve-test"))
    client = session.create_tmp()
    session.run("npm", "install", "--silent", "--prefix", client, "@ag-ui/client@1.0.0", external=True)
    session.run("pytest", "tests/judges", *session.posargs, env={"BYLINE_AGUI_CLIENT": client})


@nox.session
def bench(session: nox.Session) -> None:
    """The figures: ratios measured in one process, never asserted."""
    session.install("-e", ".[all]", *groups("bench", "langgraph-test"))
    for script in session.posargs or ["benchmarks/langgraph.py"]:
        session.run("python", script)
