"""A grant and the token it travels as: a JWT of PyJWT's, bound to one run."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, Final, Literal, cast

from byline.errors import InputError

from ._failures import KINDS, BadSignatureError, Resource

__all__ = [
    "MAX_TOKEN",
    "SHORTEST_SECRET",
    "Attempt",
    "Grant",
    "Key",
    "KeyRing",
    "peek",
    "require_jwt",
    "seal",
    "unseal",
]

MAX_TOKEN: Final = 65_536
"""How many characters a token may have: more is refused before anything of it is decoded."""

SHORTEST_SECRET: Final = 32
"""Bytes of a shared secret: as many as its hash has (RFC 7518, section 3.2)."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """A run that somebody is about to start, and all that it will use."""

    user: str
    run_id: str
    parent_agent_id: str
    thread_id: str
    mode: str = "default"
    resources: frozenset[Resource] = frozenset()

    def __post_init__(self) -> None:
        object.__setattr__(self, "resources", frozenset(Resource(*one) for one in self.resources))


@dataclass(frozen=True, slots=True)
class Grant:
    """What was permitted.  Times are seconds since the Unix epoch."""

    id: str
    user: str
    run_id: str
    parent_agent_id: str
    thread_id: str
    mode: str
    resources: frozenset[Resource]
    issued_at: int
    expires_at: int

    def missing(self, used: Iterable[Resource]) -> list[Resource]:
        """Return what of `used` the grant does not name, sorted."""
        return sorted(set(used) - self.resources)


@dataclass(frozen=True, slots=True)
class Key:
    """A key with its name: a shared secret (`HS256`), or a key pair (`EdDSA`, with `pip install 'pyjwt[crypto]'`).

    Of a pair the runtime needs the public half only: it can check a grant then, but make none.  `retired` keys open
    old tokens and seal no new ones.  Raises `InputError` for a secret that is too short.
    """

    kid: str
    secret: Any = field(repr=False)
    algorithm: Literal["HS256", "EdDSA"] = "HS256"

    def __post_init__(self) -> None:
        if not self.kid:
            raise InputError("a key needs a name (kid): it is how a token says what it was sealed with")
        if self.algorithm not in ("HS256", "EdDSA"):
            raise InputError(f"algorithm {self.algorithm!r} is not supported: HS256 or EdDSA")
        if self.algorithm == "EdDSA" and find_spec("cryptography") is None:
            raise InputError(
                f"key {self.kid!r} is a key pair, and cryptography is not installed: pip install 'pyjwt[crypto]'"
            )
        if self.algorithm == "HS256":
            secret = self.secret.encode() if isinstance(self.secret, str) else self.secret
            if not isinstance(secret, bytes) or len(secret) < SHORTEST_SECRET:
                raise InputError(
                    f"the secret of key {self.kid!r} is too short: HS256 needs {SHORTEST_SECRET} random bytes, "
                    "as secrets.token_bytes(32) gives them"
                )
            object.__setattr__(self, "secret", secret)


class KeyRing:
    """The keys that open tokens, by their names; the first one seals new tokens.

    To rotate: put the new key first and keep the old one until the tokens it sealed have expired, then drop it.
    """

    def __init__(self, *keys: Key) -> None:
        if not keys:
            raise InputError("a key ring needs a key")
        self._keys: Final = {key.kid: key for key in keys}
        if len(self._keys) != len(keys):
            raise InputError("two keys of a ring have the same name (kid): give each its own")
        self.sealing: Final = keys[0]

    def get(self, kid: object) -> Key | None:
        """Return the key of that name."""
        return self._keys.get(kid) if isinstance(kid, str) else None

    def __repr__(self) -> str:
        return f"KeyRing({', '.join(self._keys)})"


_TYPE: Final = "byline-grant+jwt"
"""The header's `typ`: another token sealed with the same key is no grant."""

_TEXTS: Final = {
    "jti": "id",
    "sub": "user",
    "run": "run_id",
    "parent": "parent_agent_id",
    "thread": "thread_id",
    "mode": "mode",
}


def require_jwt() -> Any:
    """Return PyJWT.  Raises `InputError` with the cure where it is not installed."""
    try:
        import jwt
    except ModuleNotFoundError as missing:
        raise InputError(
            "grants need PyJWT, which is not installed: pip install 'byline[grants]'"
        ) from missing
    return jwt


def seal(grant: Grant, key: Key) -> str:
    """Return `grant` as a token.  Raises `InputError` when it is too large to be one, or the key cannot seal."""
    jwt = require_jwt()
    by_kind: dict[str, list[str]] = {}
    for kind, name in sorted(grant.resources):
        by_kind.setdefault(kind, []).append(name)
    claims: dict[str, Any] = {claim: getattr(grant, name) for claim, name in _TEXTS.items()}
    claims |= {"iat": grant.issued_at, "nbf": grant.issued_at, "exp": grant.expires_at, "use": by_kind}
    headers = {"kid": key.kid, "typ": _TYPE}
    try:
        token = jwt.encode(claims, key.secret, algorithm=key.algorithm, headers=headers)
    except (jwt.PyJWTError, TypeError, AttributeError, UnicodeError) as fault:
        raise InputError(f"key {key.kid!r} cannot seal this grant: {fault}") from fault
    if len(token) > MAX_TOKEN:
        raise InputError(
            f"a grant of {len(grant.resources)} resources has {len(token)} characters, the limit is {MAX_TOKEN}: "
            "run the agent with fewer tools, or with shorter names"
        )
    return str(token)


def unseal(token: object, keys: KeyRing) -> Grant:
    """Return the grant in a token whose signature is right, whatever its time.  Raises `BadSignatureError`."""
    if not isinstance(token, str) or not token:
        raise BadSignatureError("there is no token: ask for a grant before the run and hand it over")
    if len(token) > MAX_TOKEN:
        raise BadSignatureError(f"the token has {len(token)} characters, the limit is {MAX_TOKEN}")
    try:
        return _opened(token, keys)
    except (BadSignatureError, InputError):
        raise
    except Exception as fault:  # untrusted bytes: whatever they break, they are no grant
        raise BadSignatureError("the token is no grant, or was changed after it was sealed") from fault


def peek(token: object) -> Grant:
    """Return what a token claims, without any key: nobody has checked that it is true.

    Raises `BadSignatureError` for what does not even look like a grant.
    """
    jwt = require_jwt()
    if not isinstance(token, str) or not token or len(token) > MAX_TOKEN:
        raise BadSignatureError(f"there is no token, or it has more than {MAX_TOKEN} characters")
    try:
        return _grant(jwt.decode(token, options={"verify_signature": False}))
    except Exception as fault:  # untrusted bytes
        raise BadSignatureError("the token is no grant") from fault


def _opened(token: str, keys: KeyRing) -> Grant:
    jwt = require_jwt()
    header = jwt.get_unverified_header(token)
    key = keys.get(header.get("kid"))
    if key is None:
        raise BadSignatureError(
            "the token names a key that is not on the ring: it was made elsewhere, or long ago"
        )
    # The algorithm is the key's, never the token's: "none" is no key's.  Times are judged by our own clock.
    unjudged = ("verify_exp", "verify_nbf", "verify_iat", "verify_aud", "verify_iss")
    claims = jwt.decode(
        token, key.secret, algorithms=[key.algorithm], options=cast("Any", dict.fromkeys(unjudged, False))
    )
    if header.get("typ") != _TYPE:
        raise BadSignatureError("the token is sealed with our key but is no grant")
    return _grant(claims)


def _grant(claims: Mapping[str, Any]) -> Grant:
    texts = {name: claims[claim] for claim, name in _TEXTS.items()}
    times = {name: claims[claim] for claim, name in (("iat", "issued_at"), ("exp", "expires_at"))}
    resources = frozenset(Resource(kind, name) for kind, names in claims["use"].items() for name in names)
    if not all(isinstance(value, str) for value in texts.values()):
        raise TypeError("a claim is no text")
    if not all(type(value) is int for value in times.values()):
        raise TypeError("a time is no whole number")
    if not all(kind in KINDS and isinstance(name, str) for kind, name in resources):
        raise TypeError("a resource is none")
    return Grant(**texts, **times, resources=resources)
