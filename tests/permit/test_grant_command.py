"""`byline grant inspect`: what a token covers, and why it would be refused."""

import asyncio
import re

import jwt
import pytest
from byline.cli import main
from byline.grants import Attempt, Grants, Key, KeyRing, Resource, TableDecider
from click.testing import CliRunner

SECRET = b"0123456789abcdef0123456789abcdef"
USED = frozenset({Resource("model", "small"), Resource("tool", "search"), Resource("subagent", "writer")})
ATTEMPT = Attempt("ann", "run-1", "boss", "thread-1", "chat", USED)


@pytest.fixture
def key(tmp_path):
    path = tmp_path / "secret"
    path.write_bytes(SECRET)
    return f"k1={path}"


def token(**more) -> str:
    service = Grants(KeyRing(Key("k1", SECRET)), TableDecider([("*", "*", "*")]), **more)
    return asyncio.run(service.issue(ATTEMPT))


def inspect(*arguments, **more):
    result = CliRunner().invoke(main, ["grant", "inspect", *arguments], **more)
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.exit_code, result.output.splitlines()


def test_it_says_what_a_token_covers_and_that_it_holds(key):
    code, lines = inspect(token(), "--key", key)
    lines[0] = re.sub("[0-9a-f]{32}", "ID", lines[0])
    lines[6:8] = [re.sub(r"\d+", "N", line) for line in lines[6:8]]
    assert (code, lines) == (
        0,
        [
            "grant         ID",
            "user          ann",
            "run           run-1",
            "parent agent  boss",
            "thread        thread-1",
            "mode          chat",
            "issued        N-N-N N:N:N UTC (N s ago)",
            "expires       N-N-N N:N:N UTC (N s from now)",
            "model         small",
            "subagent      writer",
            "tool          search",
            "signature     ok",
            "time          ok",
            "user          ok",
            "run           ok",
            "parent agent  ok",
            "thread        ok",
            "mode          ok",
            "coverage      ok",
            "spent         not asked: whether it was used before is known to the ledger of the runtime",
        ],
    )


def test_it_says_why_a_token_would_be_refused(key):
    old = token(clock=lambda: 1_000_000.0)
    code, lines = inspect(
        old, "--key", key, "--user", "bob", "--run", "run-2", "--parent", "p", "--thread", "t", "--mode", "m",
        "--use", "tool=shell", "--use", "tool=search",
    )  # fmt: skip
    assert code == 1
    assert [re.sub(r"\d{4,}", "N", line) for line in lines[11:]] == [
        "signature     ok",
        "time          expired: the grant expired N s ago: ask for a new one",
        "user          user_mismatch: the grant was made for another user than 'bob'",
        "run           run_mismatch: the grant was made for another run than 'run-2'",
        "parent agent  parent_mismatch: the grant was made for another parent agent than 'p'",
        "thread        scope_mismatch: the grant was made for another thread than 't'",
        "mode          scope_mismatch: the grant was made for another mode than 'm'",
        "coverage      not_covered: the run uses tool 'shell', which the grant does not name: ask for a new one",
        "spent         not asked: whether it was used before is known to the ledger of the runtime",
    ]


def test_without_a_key_nothing_is_vouched_for():
    code, lines = inspect(token())
    assert code == 1
    assert lines[-1].startswith("signature     not checked: give the key")


def test_a_forged_one_is_found_out(key):
    forged = jwt.encode(jwt.decode(token(), options={"verify_signature": False}) | {"sub": "root"}, b"x" * 32)
    code, lines = inspect(forged, "--key", key)
    assert code == 1
    assert lines[1] == "user          root"
    assert lines[11].startswith("signature     bad_signature: ")


def test_it_is_read_from_the_standard_input(key):
    assert inspect("-", "--key", key, input=f"{token()}\n")[0] == 0


def test_a_token_cannot_write_on_the_terminal():
    good = jwt.decode(token(), options={"verify_signature": False})
    _, lines = inspect(jwt.encode(good | {"sub": "\x1b[31mred\nuser          root"}, SECRET))
    assert lines[1] == "user          \ufffd[31mred\ufffduser          root"


@pytest.mark.parametrize("junk", ["", "x", "a.b.c", "\x00", "x" * 70_000])
def test_junk_is_no_grant(junk):
    code, lines = inspect(junk)
    assert (code, len(lines), lines[0][:15]) == (1, 1, "bad_signature: ")


def test_a_public_key_checks(tmp_path):
    ed25519 = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.ed25519")
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    private = ed25519.Ed25519PrivateKey.generate()
    path = tmp_path / "public.pem"
    path.write_bytes(private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    sealed = asyncio.run(
        Grants(Key("pair", private, "EdDSA"), TableDecider([("*", "*", "*")])).issue(ATTEMPT)
    )
    assert inspect(sealed, "--key", f"pair={path}")[0] == 0


@pytest.mark.parametrize(
    ("option", "why"),
    [
        (["--key", "k1=/nowhere/at/all"], "cannot read /nowhere/at/all"),
        (["--key", "k1"], "too short"),
        (["--use", "hammer=x"], "no KIND=NAME"),
        (["--use", "tool"], "no KIND=NAME"),
    ],
)
def test_options_that_cannot_be_used(option, why):
    code, lines = inspect(token(), *option)
    assert code == 2
    assert why in lines[-1]
