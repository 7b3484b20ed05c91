"""Tools that need somebody to sign in: a tagged interrupt, an answer, and no secret on the wire."""

from functools import cache

import pytest
from adk_kit import AT_ONCE, agent, answer, ask, attribute, can, collect, runner, show, user
from byline_adk.scripted import Say
from fastapi.openapi.models import APIKey, OAuth2, OAuthFlowAuthorizationCode, OAuthFlows
from google.adk.auth.auth_credential import AuthCredential, AuthCredentialTypes, OAuth2Auth
from google.adk.auth.auth_tool import AuthConfig
from google.adk.tools import FunctionTool
from google.adk.tools.authenticated_function_tool import AuthenticatedFunctionTool
from google.adk.tools.tool_context import ToolContext

# ADK warns of its own way of making a name for a credential.
pytestmark = [pytest.mark.anyio, pytest.mark.filterwarnings("ignore:This method is deprecated")]


@cache
def key():
    return AuthConfig(auth_scheme=APIKey(**{"in": "header"}, name="X-Key"), credential_key="k")


def mail():
    code = OAuthFlowAuthorizationCode(
        authorizationUrl="https://mail.example/auth",
        tokenUrl="https://mail.example/token",
        scopes={"read": "mail"},
    )
    ours = OAuth2Auth(
        client_id="our-app", client_secret="SECRET-client", redirect_uri="https://app.example/back"
    )
    return AuthConfig(
        auth_scheme=OAuth2(flows=OAuthFlows(authorizationCode=code)),
        raw_auth_credential=AuthCredential(auth_type=AuthCredentialTypes.OAUTH2, oauth2=ours),
    )


SIGNED = {"exchangedAuthCredential": {"authType": "apiKey", "apiKey": "SECRET-key"}}
ASKS = '-| RUN ASKS {} authentication adk1 call=m1 {{"type": "object", "properties": {{"exchangedAuthCredential": {{"type": "object"}}}}, "required": ["exchangedAuthCredential"]}} {{"adk": {{"authConfig": {{"authScheme": {{"type": "apiKey", "in": "header", "name": "X-Key"}}, "credentialKey": "k"}}}}}}'


async def look(q: str, tool_context: ToolContext) -> str:
    """Look something up with a key."""
    credential = tool_context.get_auth_response(key())
    if credential is None:
        tool_context.request_credential(key())
        return "pending"
    return f"{q} seen with {credential.auth_type.value}"


async def read_mail(q: str, credential: AuthCredential) -> str:
    """Read mail as the user."""
    return f"{q} read with {credential.oauth2.access_token[:6]}"


def looker(mode=None):
    last = Say(calls=[("f1", "finish_task", {"result": "ok"})]) if mode == "task" else Say("it is there")
    call = Say(calls=[("m1", "look", {"q": "x"})])
    return agent("looker", call, last, mode=mode, tools=[FunctionTool(look)])


def boss(child):
    call = ("c1", child.name, {"request": "x"})
    return agent("root", Say(calls=[call]), Say("done"), sub_agents=[child])


def sign(payload):
    return lambda events: answer((events[-1].outcome.interrupts[0].id, payload))


async def test_a_key_for_the_roots_tool():
    """The tool's answer stands for one only once it has the key."""
    assert await ask(runner(looker()), "hi", sign(SIGNED), run_config=AT_ONCE) == [
        "-| RUN",
        "-| calls m1 look in m1",
        '-| m1 {"q": "x"}',
        "-| called m1",
        ASKS.format("-"),
        "-| RUN",
        "-| m1 -> 'x seen with apiKey'",
        "-| says m2",
        "-| m2 'it is there'",
        "-| said m2",
        "-| RUN SUCCESS",
    ]


@pytest.mark.parametrize("mode", ["single_turn", "task"])
async def test_a_key_for_a_subagents_tool(mode):
    if mode == "single_turn" and not can("approval"):
        pytest.skip("what a single_turn agent asks for does not come back to it before google-adk 2.13")
    ended = {
        "single_turn": ["c1| says m3", "c1| m3 'it is there'", "c1| said m3", "c1| ."],
        "task": ['c1| . {"result": "ok"}'],
    }
    result, last = {"single_turn": ("it is there", "m4"), "task": ("ok", "m3")}[mode]
    assert await ask(runner(boss(looker(mode))), "hi", sign(SIGNED), run_config=AT_ONCE) == [
        "-| RUN",
        "-| calls c1 looker in m1",
        '-| c1 {"request": "x"}',
        "-| called c1",
        f"-| + c1 looker ({mode}) by c1",
        "c1| calls m1 look in m2",
        'c1| m1 {"q": "x"}',
        "c1| called m1",
        "c1| ~ adk1",
        ASKS.format("c1"),
        "-| RUN",
        f"-| + c1 looker ({mode}) by c1",
        "c1| m1 -> 'x seen with apiKey'",
        *ended[mode],
        f"-| c1 -> {result!r}",
        f"-| says {last}",
        f"-| {last} 'done'",
        f"-| said {last}",
        "-| RUN SUCCESS",
    ]


@pytest.mark.parametrize("whole", [True, False])
async def test_no_secret_is_told(whole):
    """The client is told where its user signs in, and gives back the credential alone, or all that it was told with it."""
    reader = agent(
        "reader",
        Say(calls=[("m1", "read_mail", {"q": "x"})]),
        Say("read"),
        tools=[AuthenticatedFunctionTool(func=read_mail, auth_config=mail())],
    )
    found = attribute(runner(reader), run_config=AT_ONCE)
    first = await collect(found.run(user("hi")))
    (asked,) = first[-1].outcome.interrupts
    told = asked.metadata["adk"]["authConfig"]
    where = told["exchangedAuthCredential"]["oauth2"].pop("authUri")
    state = told["exchangedAuthCredential"]["oauth2"].pop("state")
    assert where.startswith("https://mail.example/auth?")
    assert f"state={state}" in where
    assert told["rawAuthCredential"]["oauth2"]["clientId"] == "our-app"
    assert asked.tool_call_id == "m1"
    given = {"authType": "oauth2", "oauth2": {"accessToken": "SECRET-token"}}
    payload = {**(told if whole else {}), "exchangedAuthCredential": given}
    second = await collect(found.run(answer((asked.id, payload))))
    assert show(second) == [
        "-| RUN",
        "-| m1 -> 'x read with SECRET'",
        "-| says m1",
        "-| m1 'read'",
        "-| said m1",
        "-| RUN SUCCESS",
    ]
    wire = "".join(event.model_dump_json() for event in first + second)
    assert "SECRET-" not in wire
    history = await found.history("t")
    assert "SECRET-" not in str(history.to_json())
