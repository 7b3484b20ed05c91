"""Grants: each check before a run and each failure of the text is a test named after it."""

import asyncio
import base64
import json
import sys
import threading
import time
from dataclasses import replace

import jwt
import pytest
from byline.errors import InputError, StoreError
from byline.grants import (
    CODES,
    FORGET_AFTER,
    MAX_TOKEN,
    AccessRequest,
    Attempt,
    BadSignatureError,
    DecisionFailedError,
    DecisionTimedOutError,
    DeniedError,
    ExpiredError,
    Grant,
    GrantError,
    Grants,
    HookDecider,
    Key,
    KeyRing,
    MemoryLedger,
    NotCoveredError,
    NotYetValidError,
    ParentMismatchError,
    ReplayedError,
    Resource,
    RunMismatchError,
    ScopeMismatchError,
    StoreUnavailableError,
    TableDecider,
    UserMismatchError,
    peek,
)
from byline.hooks import Plugins, hookimpl
from hypothesis import given
from hypothesis import strategies as st

SECRET = b"0123456789abcdef0123456789abcdef"
OTHER = b"fedcba9876543210fedcba9876543210"

USED = frozenset(
    {
        Resource("model", "small"),
        Resource("tool", "search"),
        Resource("middleware", "TodoList"),
        Resource("skill", "/skills/report"),
        Resource("subagent", "writer"),
    }
)
ATTEMPT = Attempt("ann", "run-1", "boss", "thread-1", "chat", USED)
EVERYTHING = TableDecider([("*", "*", "*")])


class Clock:
    def __init__(self, now: float = 1_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def grants(decider=EVERYTHING, **more) -> Grants:
    return Grants(KeyRing(Key("k1", SECRET)), decider, **({"clock": Clock()} | more))


def issue(service: Grants, attempt: Attempt = ATTEMPT) -> str:
    return asyncio.run(service.issue(attempt))


# -------------------------------------------------------------------------------------- before a run: the decision


def test_the_resources_of_the_run_are_evaluated_and_kept_as_a_grant():
    service = grants()
    grant = service.check(issue(service), ATTEMPT)
    assert grant == Grant(
        id=grant.id,
        user="ann",
        run_id="run-1",
        parent_agent_id="boss",
        thread_id="thread-1",
        mode="chat",
        resources=USED,
        issued_at=1_000_000,
        expires_at=1_000_300,
    )
    assert len(grant.id) == 32


def test_the_decider_is_asked_for_the_permission_to_use_on_each_resource():
    asked = []

    class Recorder:
        def can_use(self, request: AccessRequest) -> bool:
            asked.append(request)
            return True

    issue(grants(Recorder()))
    assert asked == [
        AccessRequest("ann", Resource(kind, name), "run-1", "boss", "thread-1", "chat", "RESOURCE_CAN_USE")
        for kind, name in [
            ("middleware", "TodoList"),
            ("model", "small"),
            ("skill", "/skills/report"),
            ("subagent", "writer"),
            ("tool", "search"),
        ]
    ]


def test_a_grant_holds_no_more_than_was_asked_for():
    service = grants()
    grant = service.check(
        issue(service, replace(ATTEMPT, resources=frozenset())), replace(ATTEMPT, resources=frozenset())
    )
    assert grant.resources == frozenset()


# ------------------------------------------------------------------------------------------ what the runtime checks


def refused(service: Grants, token, attempt: Attempt = ATTEMPT) -> GrantError:
    with pytest.raises(GrantError) as raised:
        service.admit(token, attempt)
    return raised.value


def test_the_grant_has_not_expired():
    clock = Clock()
    service = grants(clock=clock)
    token = issue(service)
    clock.now += 299.9
    service.check(token, ATTEMPT)
    clock.now += 0.1
    fault = refused(service, token)
    assert (type(fault), fault.code) == (ExpiredError, "expired")


def test_the_run_id_matches():
    service = grants()
    fault = refused(service, issue(service), replace(ATTEMPT, run_id="run-2"))
    assert (type(fault), fault.code) == (RunMismatchError, "run_mismatch")
    assert str(fault) == "run_mismatch: the grant was made for another run than 'run-2'"


def test_the_parent_agent_matches():
    service = grants()
    fault = refused(service, issue(service), replace(ATTEMPT, parent_agent_id="other"))
    assert (type(fault), fault.code) == (ParentMismatchError, "parent_mismatch")


def test_the_grant_is_not_used_again():
    service = grants()
    token = issue(service)
    assert service.admit(token, ATTEMPT).user == "ann"
    fault = refused(service, token)
    assert (type(fault), fault.code) == (ReplayedError, "replayed")


@pytest.mark.parametrize("kind", ["model", "tool", "middleware", "skill", "subagent"])
def test_what_is_really_used_is_covered(kind):
    service = grants()
    used = replace(ATTEMPT, resources=USED | {Resource(kind, "added later")})
    fault = refused(service, issue(service), used)
    assert (type(fault), fault.code) == (NotCoveredError, "not_covered")
    assert fault.resources == (Resource(kind, "added later"),)
    assert f"{kind} 'added later'" in str(fault)


@pytest.mark.parametrize("kind", ["model", "tool", "middleware", "skill", "subagent"])
def test_every_needed_resource_has_the_permission_to_use(kind):
    name = next(resource.name for resource in USED if resource.kind == kind)
    rows = [("ann", resource.kind, resource.name) for resource in USED if resource.kind != kind]
    with pytest.raises(DeniedError) as raised:
        issue(grants(TableDecider(rows)))
    assert (raised.value.code, raised.value.resources) == ("denied", (Resource(kind, name),))
    assert str(raised.value) == f"denied: 'ann' has no RESOURCE_CAN_USE on {kind} {name!r}"


def test_every_denied_resource_is_named_at_once():
    with pytest.raises(DeniedError) as raised:
        issue(grants(TableDecider([("ann", "model", "*"), ("*", "tool", "search"), ("bob", "*", "*")])))
    assert [str(resource) for resource in raised.value.resources] == [
        "middleware 'TodoList'",
        "skill '/skills/report'",
        "subagent 'writer'",
    ]


def test_fewer_resources_than_granted_are_covered():
    service = grants()
    assert service.admit(issue(service), replace(ATTEMPT, resources=frozenset({Resource("model", "small")})))


@pytest.mark.parametrize(
    ("change", "kind", "code"),
    [
        ({"user": "bob"}, UserMismatchError, "user_mismatch"),
        ({"thread_id": "thread-2"}, ScopeMismatchError, "scope_mismatch"),
        ({"mode": "batch"}, ScopeMismatchError, "scope_mismatch"),
    ],
)
def test_user_thread_and_mode_match(change, kind, code):
    service = grants()
    fault = refused(service, issue(service), replace(ATTEMPT, **change))
    assert (type(fault), fault.code) == (kind, code)


def test_the_user_of_a_grant_is_not_told_to_whoever_shows_it():
    service = grants()
    assert "ann" not in str(refused(service, issue(service), replace(ATTEMPT, user="bob")))


ALL_WRONG = Attempt("bob", "run-2", "other", "thread-2", "batch", frozenset({Resource("tool", "shell")}))


def test_the_checks_come_in_their_order():
    """Everything is wrong at first; each cure uncovers the next fault."""
    clock = Clock()
    service = grants(clock=clock)
    token = issue(service)
    clock.now += 400
    seen = []
    attempt = ALL_WRONG
    cures = [
        lambda: setattr(clock, "now", clock.now - 500),
        lambda: setattr(clock, "now", 1_000_010),
        {"user": "ann"},
        {"run_id": "run-1"},
        {"parent_agent_id": "boss"},
        {"thread_id": "thread-1"},
        {"mode": "chat"},
        {"resources": USED},
    ]
    seen.append(refused(service, token[:-2], attempt).code)
    for cure in cures:
        seen.append(refused(service, token, attempt).code)
        if callable(cure):
            cure()
        else:
            attempt = replace(attempt, **cure)
    assert service.admit(token, attempt)
    seen.append(refused(service, token, attempt).code)
    assert seen == [
        "bad_signature",
        "expired",
        "not_yet_valid",
        "user_mismatch",
        "run_mismatch",
        "parent_mismatch",
        "scope_mismatch",
        "scope_mismatch",
        "not_covered",
        "replayed",
    ]


@pytest.mark.parametrize(
    "change",
    [{"user": "bob"}, {"run_id": "x"}, {"thread_id": "x"}, {"resources": USED | {Resource("tool", "x")}}],
)
def test_a_mismatch_does_not_spend_a_good_grant(change):
    service = grants()
    token = issue(service)
    refused(service, token, replace(ATTEMPT, **change))
    assert service.admit(token, ATTEMPT)


# ----------------------------------------------------------------------------------- failures are different causes


def test_every_failure_has_a_type_and_a_stable_code_of_its_own():
    assert {code: kind.__name__ for code, kind in CODES.items()} == {
        "denied": "DeniedError",
        "decision_timeout": "DecisionTimedOutError",
        "decision_failed": "DecisionFailedError",
        "bad_signature": "BadSignatureError",
        "expired": "ExpiredError",
        "not_yet_valid": "NotYetValidError",
        "user_mismatch": "UserMismatchError",
        "run_mismatch": "RunMismatchError",
        "parent_mismatch": "ParentMismatchError",
        "scope_mismatch": "ScopeMismatchError",
        "not_covered": "NotCoveredError",
        "replayed": "ReplayedError",
        "store_unavailable": "StoreUnavailableError",
    }
    kinds = list(CODES.values())
    assert not [(a, b) for a in kinds for b in kinds if a is not b and issubclass(a, b)]


# --------------------------------------------------------------------------------------------------------- deciders


def within(seconds: float, call):
    began = time.monotonic()
    with pytest.raises(GrantError) as raised:
        call()
    assert time.monotonic() - began < seconds
    return raised.value


def test_a_sync_decider_that_hangs_is_left_behind_and_its_late_answer_ignored():
    free = threading.Event()

    class Hangs:
        def can_use(self, request):
            free.wait(20)
            return True

    service = grants(Hangs(), limit=0.1)
    fault = within(5, lambda: issue(service))
    assert (type(fault), fault.code) == (DecisionTimedOutError, "decision_timeout")
    assert service.undecided == 1
    free.set()
    until = time.monotonic() + 5
    while service.undecided and time.monotonic() < until:
        time.sleep(0.01)
    assert service.undecided == 0


def test_an_async_decider_that_hangs_is_stopped():
    stopped = []

    class Hangs:
        async def can_use(self, request):
            try:
                await asyncio.sleep(60)
            finally:
                stopped.append(True)

    service = grants(Hangs(), limit=0.1)
    assert within(5, lambda: issue(service)).code == "decision_timeout"
    assert (stopped, service.undecided) == ([True], 0)


def test_an_async_decider_that_will_not_be_stopped_is_left_behind():
    async def scenario():
        free = asyncio.Event()

        class Stubborn:
            async def can_use(self, request):
                while not free.is_set():
                    try:
                        await free.wait()
                    except asyncio.CancelledError:
                        continue
                return True

        service = grants(Stubborn(), limit=0.1)
        with pytest.raises(DecisionTimedOutError):
            await service.issue(ATTEMPT)
        left = service.undecided
        free.set()
        await asyncio.sleep(0.05)
        return left, service.undecided

    assert asyncio.run(scenario()) == (1, 0)


def test_the_number_of_those_left_behind_is_bounded():
    free = threading.Event()
    begun = []

    class Hangs:
        def can_use(self, request):
            begun.append(request)
            free.wait(20)
            return True

    service = grants(Hangs(), limit=0.05, workers=3)
    try:
        for _ in range(6):
            assert within(5, lambda: issue(service)).code == "decision_timeout"
        assert (len(begun), service.undecided) == (3, 3)
    finally:
        free.set()


def test_a_decider_that_is_slow_for_each_resource_has_one_limit_for_all():
    class Slow:
        def can_use(self, request):
            time.sleep(0.08)
            return True

    assert within(1, lambda: issue(grants(Slow(), limit=0.2))).code == "decision_timeout"


def test_the_loop_goes_on_while_a_sync_decider_thinks():
    async def scenario():
        class Slow:
            def can_use(self, request):
                time.sleep(0.05)
                return True

        ticks = 0
        work = asyncio.ensure_future(grants(Slow()).issue(ATTEMPT))
        while not work.done():
            await asyncio.sleep(0.005)
            ticks += 1
        await work
        return ticks

    assert asyncio.run(scenario()) > 5


@pytest.mark.parametrize("fault", [RuntimeError("policy file is broken"), StopIteration(), SystemExit(3)])
def test_a_decider_that_raises_permits_nothing(fault):
    class Raises:
        def can_use(self, request):
            raise fault

    found = within(5, lambda: issue(grants(Raises())))
    assert (type(found), found.code) == (DecisionFailedError, "decision_failed")


def test_an_async_decider_that_raises_permits_nothing():
    class Raises:
        async def can_use(self, request):
            raise PermissionError("no")

    assert within(5, lambda: issue(grants(Raises()))).code == "decision_failed"


@pytest.mark.parametrize("answer", [None, 1, "yes", object()])
def test_only_true_is_a_permission(answer):
    class Odd:
        def can_use(self, request):
            return answer

    assert within(5, lambda: issue(grants(Odd()))).code == "decision_failed"


def test_a_plain_function_may_return_a_coroutine():
    class Both:
        def can_use(self, request):
            async def later():
                return request.resource.kind != "tool"

            return later()

    fault = within(5, lambda: issue(grants(Both())))
    assert (fault.code, fault.resources) == ("denied", (Resource("tool", "search"),))


def test_a_hook_decides_and_no_answer_is_no_permission():
    class Policy:
        @hookimpl
        def byline_decide(self, request):
            return True if request.resource.kind != "tool" else None

    fault = within(5, lambda: issue(grants(HookDecider(Plugins([Policy()])))))
    assert (fault.code, fault.resources) == ("denied", (Resource("tool", "search"),))


def test_a_fault_in_a_hook_refuses():
    class Policy:
        @hookimpl
        def byline_decide(self, request):
            raise RuntimeError("broken")

    assert within(5, lambda: issue(grants(HookDecider(Plugins([Policy()]))))).code == "decision_failed"


def test_nobody_to_ask_is_said():
    with pytest.raises(InputError, match="needs a decider"):
        issue(grants(None))


@pytest.mark.parametrize("row", [("ann", "hammer", "x"), ("ann", "tool")])
def test_a_table_of_unknown_kinds_is_refused(row):
    with pytest.raises(InputError, match="no row"):
        TableDecider([row])


# -------------------------------------------------------------------------------------------------------- the token


def forged(claims: dict | None = None, *, secret: bytes = SECRET, algorithm="HS256", **header) -> str:
    service = grants()
    good = jwt.decode(issue(service), options={"verify_signature": False})
    head = {"kid": "k1", "typ": "byline-grant+jwt"} | header
    return jwt.encode(good | (claims or {}), secret, algorithm=algorithm, headers=head)


def part(value) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def unsigned() -> str:
    _, body, _ = forged().split(".")
    return f"{part({'alg': 'none', 'kid': 'k1', 'typ': 'byline-grant+jwt'})}.{body}."


def with_another_body() -> str:
    head, body, signature = forged().split(".")
    claims = json.loads(base64.urlsafe_b64decode(body + "=="))
    return f"{head}.{part(claims | {'sub': 'bob'})}.{signature}"


BAD = {
    "nothing": lambda: "",
    "none": lambda: None,
    "bytes": lambda: forged().encode(),
    "a number": lambda: 7,
    "words": lambda: "let me in",
    "alg none": unsigned,
    "alg none in capitals": lambda: unsigned().replace(
        part({"alg": "none", "kid": "k1", "typ": "byline-grant+jwt"}),
        part({"alg": "NONE", "kid": "k1", "typ": "byline-grant+jwt"}),
    ),
    "another secret": lambda: forged(secret=OTHER),
    "another algorithm": lambda: forged(secret=SECRET * 2, algorithm="HS512"),
    "another body": with_another_body,
    "truncated": lambda: forged()[:-5],
    "without a signature": lambda: forged().rpartition(".")[0] + ".",
    "cut in the body": lambda: forged()[:60],
    "four parts": lambda: forged() + ".x",
    "an unknown key": lambda: forged(kid="k9"),
    "no key": lambda: forged(kid=""),
    "a key that is no text": lambda: f"{part({'alg': 'HS256', 'kid': ['k1']})}." + forged().partition(".")[2],
    "another token of ours": lambda: forged(typ="JWT"),
    "no run": lambda: forged({"run": None}),
    "a run that is no text": lambda: forged({"run": 5}),
    "a time that is no number": lambda: forged({"exp": "tomorrow"}),
    "a time that is NaN": lambda: forged({"exp": float("nan")}),
    "a time that is true": lambda: forged({"exp": True}),
    "resources that are none": lambda: forged({"use": "everything"}),
    "a resource of no kind": lambda: forged({"use": {"hammer": ["x"]}}),
    "a resource without a name": lambda: forged({"use": {"tool": [1]}}),
    "huge": lambda: "x" * (MAX_TOKEN + 1),
    "deep": lambda: base64.urlsafe_b64encode(b"[" * 40_000).decode() + ".e30.e30",
    "zero bytes": lambda: "\x00.\x00.\x00",
    "half a surrogate pair": lambda: "\ud800.\ud800.\ud800",
    "not ASCII": lambda: "é.é.é",
}


@pytest.mark.parametrize("token", BAD.values(), ids=BAD.keys())
def test_a_bad_token_is_refused_before_anything_else(token):
    fault = refused(grants(), token())
    assert (type(fault), fault.code) == (BadSignatureError, "bad_signature")


def test_a_good_token_made_by_hand_is_accepted():
    """The counterpart of the forged ones: what they change is what makes them bad."""
    assert grants().admit(forged(), ATTEMPT).user == "ann"


def test_ten_megabytes_are_refused_without_being_decoded():
    service, token = grants(), "A" * 10_000_000
    began = time.process_time()
    refused(service, token)
    assert time.process_time() - began < 0.05


@given(st.text(max_size=300) | st.binary(max_size=300).map(lambda raw: raw.decode("latin-1")))
def test_no_text_is_a_token(text):
    with pytest.raises(BadSignatureError):
        grants().check(text, ATTEMPT)


@given(st.integers(0, 10_000), st.characters(codec="ascii"))
def test_no_token_with_a_character_changed_is_a_grant_of_more(at, character):
    service = grants()
    token = forged()
    at %= len(token)
    changed = token[:at] + character + token[at + 1 :]
    try:
        grant = service.check(changed, ATTEMPT)
    except BadSignatureError:
        return
    assert grant == service.check(token, ATTEMPT)  # the last character has bits that base64 ignores


def test_a_grant_too_large_for_a_token_is_refused_with_the_cure():
    many = frozenset(Resource("tool", f"tool-{i:05}") for i in range(5_000))
    with pytest.raises(InputError, match="fewer tools"):
        issue(grants(), replace(ATTEMPT, resources=many))


def test_the_token_does_not_hold_the_secret_and_a_key_does_not_print_it():
    assert "0123456789" not in repr(Key("k1", SECRET))
    assert "0123456789" not in repr(KeyRing(Key("k1", SECRET)))


# ------------------------------------------------------------------------------------------------------------- keys


def test_keys_are_rotated_by_their_name():
    old, new = Key("2026-01", SECRET), Key("2026-02", OTHER)
    before = Grants(KeyRing(old), EVERYTHING, clock=Clock())
    during = Grants(KeyRing(new, old), EVERYTHING, clock=Clock())
    after = Grants(KeyRing(new), EVERYTHING, clock=Clock())
    token = issue(before)
    assert during.check(token, ATTEMPT)
    assert refused(after, token).code == "bad_signature"
    newer = issue(during)
    assert jwt.get_unverified_header(newer)["kid"] == "2026-02"
    assert after.check(newer, ATTEMPT)
    assert refused(before, newer).code == "bad_signature"


def test_a_key_pair_lets_the_runtime_check_what_it_cannot_make():
    ed25519 = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.ed25519")
    private = ed25519.Ed25519PrivateKey.generate()
    service = Grants(Key("pair", private, "EdDSA"), EVERYTHING, clock=Clock())
    runtime = Grants(Key("pair", private.public_key(), "EdDSA"), EVERYTHING, clock=Clock())
    token = issue(service)
    assert runtime.admit(token, ATTEMPT).user == "ann"
    with pytest.raises(InputError, match="cannot seal"):
        issue(runtime)
    assert refused(runtime, forged(kid="pair")).code == "bad_signature", (
        "a shared secret is not this key's algorithm"
    )


def test_a_key_pair_without_cryptography_names_what_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(InputError, match=r"'pair' is a key pair.*pip install 'pyjwt\[crypto\]'"):
        Key("pair", object(), "EdDSA")
    assert Key("shared", SECRET).algorithm == "HS256"


def test_the_bytes_of_one_secret_are_a_key_ring():
    service = Grants(SECRET, EVERYTHING, clock=Clock())
    assert Grants(SECRET, clock=Clock()).admit(issue(service), ATTEMPT)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: Key("k", b"short"), "too short"),
        (lambda: Key("k", 12345), "too short"),
        (lambda: Key("", SECRET), "needs a name"),
        (lambda: Key("k", SECRET, "none"), "not supported"),
        (lambda: KeyRing(), "needs a key"),
        (lambda: KeyRing(Key("k", SECRET), Key("k", OTHER)), "same name"),
    ],
)
def test_keys_that_cannot_be_used_are_refused(make, why):
    with pytest.raises(InputError, match=why):
        make()


# --------------------------------------------------------------------------------------------------- clocks that jump


def test_a_clock_a_little_behind_the_issuers_is_borne():
    clock = Clock()
    service = grants(clock=clock)
    token = issue(service)
    clock.now -= 5
    assert service.check(token, ATTEMPT)
    clock.now -= 1
    fault = refused(service, token)
    assert (type(fault), fault.code) == (NotYetValidError, "not_yet_valid")


def test_a_grant_forgotten_by_a_clock_that_jumped_ahead_stays_spent_when_it_jumps_back():
    clock = Clock()
    service = grants(clock=clock)
    token = issue(service)
    service.admit(token, ATTEMPT)
    clock.now += 10 * FORGET_AFTER
    fresh = issue(service)
    service.admit(fresh, ATTEMPT)
    assert len(service.ledger) == 1, "the first one has been forgotten"
    clock.now = 1_000_001.0
    assert refused(service, token).code == "replayed"


def test_spent_grants_are_forgotten_when_they_expired_long_ago():
    clock = Clock()
    ledger = MemoryLedger(clock)
    for number in range(100):
        assert ledger.spend(f"g{number}", int(clock.now) + 300)
        clock.now += FORGET_AFTER
    assert len(ledger) <= 3


# --------------------------------------------------------------------------------------------------------- the ledger


@pytest.mark.parametrize("fault", [StoreError("the disk is full"), OSError("connection refused")])
def test_a_ledger_that_is_down_or_full_refuses(fault):
    class Down:
        def spend(self, jti, until):
            raise fault

    service = grants(ledger=Down())
    found = refused(service, issue(service))
    assert (type(found), found.code) == (StoreUnavailableError, "store_unavailable")


def test_a_ledger_that_answers_neither_yes_nor_no_refuses():
    class Odd:
        def spend(self, jti, until):
            return 1

    service = grants(ledger=Odd())
    assert refused(service, issue(service)).code == "replayed"


def test_of_32_threads_one_spends_a_grant():
    service = grants()
    token = issue(service)
    start, won, lost = threading.Barrier(32), [], []

    def run():
        start.wait()
        try:
            won.append(service.admit(token, ATTEMPT).id)
        except ReplayedError:
            lost.append(1)

    threads = [threading.Thread(target=run) for _ in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(won), len(lost)) == (1, 31)


# ----------------------------------------------------------------------------------------------------------- explain


def test_explain_names_every_check_and_spends_nothing():
    service = grants()
    token = issue(service)
    lines = [(check.what, check.fault and check.fault.code) for check in service.explain(token, ALL_WRONG)]
    assert lines == [
        ("signature", None),
        ("time", None),
        ("user", "user_mismatch"),
        ("run", "run_mismatch"),
        ("parent agent", "parent_mismatch"),
        ("thread", "scope_mismatch"),
        ("mode", "scope_mismatch"),
        ("coverage", "not_covered"),
    ]
    assert [check.what for check in service.explain("x", ALL_WRONG)] == ["signature"]
    assert [check.what for check in service.explain(token)] == ["signature", "time"]
    assert service.admit(token, ATTEMPT)


def test_a_missing_extra_names_the_pip_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "jwt", None)
    for use in (lambda: Grants(SECRET), lambda: peek("a.b.c")):
        with pytest.raises(InputError, match=r"pip install 'byline\[grants\]'"):
            use()
