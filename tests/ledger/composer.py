"""Makes legal streams of any shape, from a seed: what several owners do at once, in every form the protocol has.

It knows as little as it needs to stay legal: what is open, whose each id is, what a lane has in it.  What the messages
come to is for others to say.
"""

from copy import deepcopy

from byline.ledger import Ledger

TAG = "subagentRunId"
WORDS = ["", "a", "be ", "sea", "é", "line\n"]


def tagged(owner):
    return {} if owner is None else {TAG: owner}


class Composer:
    def __init__(self, random, *, runs=3, actions=40):
        self.random = random
        self.events = []
        self.ledger = Ledger()
        self.count = 0
        self.state = {"n": 0, "list": []}
        self.suspended = []  # ids that a later run may continue, parents first
        self.messages = {}  # id: owner, role, name of text messages that may be reopened
        self.activities = {}  # id: owner
        for number in range(runs):
            self.run(f"r{number}", actions)

    # -- what there is --------------------------------------------------------------------------------------------

    def fresh(self, prefix):
        self.count += 1
        return f"{prefix}{self.count}"

    def choose(self, things):
        return self.random.choice(list(things))

    def maybe(self, chance=0.5):
        return self.random.random() < chance

    def owner(self):
        return self.choose([None, *self.announced, *self.strangers])

    def send(self, type_, owner=None, **members):
        event = {"type": type_, **members, **tagged(owner)}
        if self.maybe(0.15) and type_ not in {"MESSAGES_SNAPSHOT", "RUN_STARTED"}:
            event["metadata"] = {self.choose("xyz"): self.random.randrange(3)}
        if self.maybe(0.2):
            event["timestamp"] = 1_700_000_000_000 + len(self.events)
        self.events.append(event)
        refusal = self.ledger.feed(event)
        assert refusal is None, (refusal, self.events)
        if type_ == "MESSAGES_SNAPSHOT":
            self.lanes.clear()
        if not type_.endswith("_CHUNK") and type_ not in {
            "RAW",
            "ACTIVITY_SNAPSHOT",
            "ACTIVITY_DELTA",
            "REASONING_ENCRYPTED_VALUE",
            "SUBAGENT_STARTED",
        }:
            self.lanes.pop(owner, None)

    def again(self, owner):
        """Return the tag of a continuation, which may be left out where no lane could mistake it."""
        if owner is not None and owner not in self.lanes and None not in self.lanes and self.maybe(0.3):
            return None
        return owner

    # -- a run ----------------------------------------------------------------------------------------------------

    def run(self, run_id, actions):
        self.announced, self.active, self.strangers = [], [], [self.fresh("stranger-")]
        self.open = {}  # (kind, id): owner
        self.calls = {}  # id: owner, name, parent, answered
        self.steps, self.lanes = [], {}
        self.reopenable = {}  # of this run
        opening = {"threadId": "t", "runId": run_id, "protocolVersion": "1.0"}
        if self.maybe(0.3):
            messages = [{"id": self.fresh("u"), "role": "user", "content": self.choose(WORDS)}]
            opening["input"] = {"threadId": "t", "runId": run_id, "messages": messages}
            if self.maybe():
                if self.events:  # an input has the state that the client has
                    self.state = deepcopy(self.ledger.state)
                opening["input"]["state"] = self.state
        self.send("RUN_STARTED", **opening)
        if not self.events[:-1] and "state" not in opening.get("input", {}):
            self.send("STATE_SNAPSHOT", snapshot=self.state)
        for id_ in self.suspended:
            self.announce(id_)
        self.suspended = []
        moves = [getattr(self, name) for name in dir(self) if name.startswith("do_")]
        for _ in range(self.random.randrange(actions)):
            self.choose(moves)()
        if self.maybe(0.15):
            self.send("RUN_ERROR", message="no", code="x")
        else:
            self.finish_run(run_id)

    def finish_run(self, run_id):
        for kind, id_ in list(self.open):
            self.end(kind, id_)
        for owner, name in self.steps:
            self.send("STEP_FINISHED", owner, stepName=name)
        asked = []
        while self.active:
            id_ = self.active.pop()
            if self.maybe(0.3):
                asked.append({"id": self.fresh("i"), "reason": "approval", TAG: id_})
                outcome = {"type": "suspended", "interruptIds": [asked[-1]["id"]]}
                self.send("SUBAGENT_FINISHED", id_, outcome=outcome)
                self.suspended.insert(0, id_)
            else:
                self.leave(id_)
        outcome = {"type": "interrupt", "interrupts": asked} if asked else {"type": "success"}
        if not asked and self.maybe():
            outcome = {"type": "cancelled"}
        self.send("RUN_FINISHED", threadId="t", runId=run_id, outcome=outcome)

    # -- invocations ----------------------------------------------------------------------------------------------

    def announce(self, id_, **more):
        self.send("SUBAGENT_STARTED", id_, name=self.choose(["writer", "critic", ""]), **more)
        self.announced.append(id_)
        self.active.append(id_)

    def do_announce(self):
        more = {}
        if self.announced and self.maybe():
            more["parentSubagentRunId"] = self.choose(self.announced)
        if self.calls and self.maybe():
            more["parentToolCallId"] = self.choose(self.calls)
        self.announce(self.fresh("s"), **more)

    def leave(self, id_):
        if self.maybe(0.3):
            self.send("SUBAGENT_ERROR", id_, message="no", code=self.choose(["cancelled", "x"]))
        else:
            self.send("SUBAGENT_FINISHED", id_, **({"result": {"ok": 1}} if self.maybe() else {}))

    def do_leave(self):
        if self.active:
            self.leave(self.active.pop(self.random.randrange(len(self.active))))

    # -- items in full --------------------------------------------------------------------------------------------

    def free(self, id_):
        return all(id_ != open_ for _, open_ in self.open) and all(
            id_ != lane[1] for lane in self.lanes.values()
        )

    def do_start_text(self):
        closed = [id_ for id_ in self.reopenable if self.free(id_)]
        if closed and self.maybe(0.3):
            id_ = self.choose(closed)
            owner, role, name = self.reopenable[id_]
        else:
            id_, owner = self.fresh("m"), self.owner()
            role, name = self.choose([None, "assistant", "user", "system"]), self.choose([None, "N"])
            self.reopenable[id_] = owner, role, name
        label = {key: value for key, value in (("role", role), ("name", name)) if value is not None}
        self.send("TEXT_MESSAGE_START", owner, messageId=id_, **label)
        self.open["TEXT_MESSAGE", id_] = owner

    def do_start_reasoning(self):
        id_, owner = self.fresh("g"), self.owner()
        self.send("REASONING_MESSAGE_START", owner, messageId=id_, role="reasoning")
        self.open["REASONING_MESSAGE", id_] = owner

    def do_start_span(self):
        id_, owner = self.fresh("p"), self.owner()
        self.send("REASONING_START", owner, messageId=id_)
        self.open["REASONING", id_] = owner

    def do_start_call(self):
        closed = [id_ for id_ in self.calls if self.free(id_) and id_ in self.listed_calls()]
        if closed and self.maybe(0.2):
            id_ = self.choose(closed)
            owner, name, parent = self.calls[id_]
        else:
            id_, owner, name = self.fresh("c"), self.owner(), self.choose(["look", "write"])
            own = [
                m for m, (o, role, _) in self.reopenable.items() if o == owner and role in {None, "assistant"}
            ]
            own = [m for m in own if m in self.listed()]
            parent = self.choose([None, self.fresh("n"), *own])
            self.calls[id_] = owner, name, parent
        more = {} if parent is None else {"parentMessageId": parent}
        self.send("TOOL_CALL_START", owner, toolCallId=id_, toolCallName=name, **more)
        self.open["TOOL_CALL", id_] = owner

    def do_continue(self):
        candidates = [key for key in self.open if key[0] != "REASONING"]
        if candidates:
            kind, id_ = self.choose(candidates)
            part, member = ("ARGS", "toolCallId") if kind == "TOOL_CALL" else ("CONTENT", "messageId")
            self.send(
                f"{kind}_{part}", self.again(self.open[kind, id_]), **{member: id_}, delta=self.choose(WORDS)
            )

    do_continue_more = do_continue_still_more = do_continue

    def do_end(self):
        if self.open:
            self.end(*self.choose(self.open))

    def end(self, kind, id_):
        member = "toolCallId" if kind == "TOOL_CALL" else "messageId"
        self.send(f"{kind}_END", self.again(self.open.pop((kind, id_))), **{member: id_})

    def do_answer(self):
        lanes = {lane[1] for lane in self.lanes.values()}
        ready = [id_ for id_ in self.calls if id_ not in lanes]
        if ready:
            id_ = self.choose(ready)
            if ("TOOL_CALL", id_) in self.open:
                self.end("TOOL_CALL", id_)
            content = self.choose(["found", "", [{"type": "text", "text": "part"}]])
            self.send(
                "TOOL_CALL_RESULT", self.owner(), messageId=self.fresh("a"), toolCallId=id_, content=content
            )

    def do_encrypt(self):
        calls = self.listed_calls()
        if calls and self.maybe():
            members = {"subtype": "tool-call", "entityId": self.choose(calls)}
        elif listed := [m for m, role in self.listed().items() if role != "activity"]:
            members = {"subtype": "message", "entityId": self.choose(listed)}
        else:
            return
        self.send("REASONING_ENCRYPTED_VALUE", **members, encryptedValue=self.choose(WORDS))

    # -- chunks ---------------------------------------------------------------------------------------------------

    def do_chunk(self):
        owner = self.owner()
        lane = self.lanes.get(owner)
        if lane is None or self.maybe(0.3):
            kind = self.choose(["TEXT_MESSAGE", "TOOL_CALL", "REASONING_MESSAGE"])
            id_ = self.fresh("k")
            members = (
                {"toolCallId": id_, "toolCallName": "look"} if kind == "TOOL_CALL" else {"messageId": id_}
            )
            if kind == "TEXT_MESSAGE" and self.maybe():
                members["role"] = "user"
            self.lanes[owner] = kind, id_
        else:
            kind, id_ = lane
            member = "toolCallId" if kind == "TOOL_CALL" else "messageId"
            alone = sum(other[0] == kind for other in self.lanes.values()) == 1
            if owner is None or alone or self.maybe():
                members = self.choose([{member: id_}, {}] if alone or owner is None else [{member: id_}])
                owner = self.choose([owner, None]) if member in members or alone else owner
            else:
                members = {}
        if self.maybe(0.8):
            members["delta"] = self.choose(WORDS)
        self.send(f"{kind}_CHUNK", owner, **members)

    do_chunk_more = do_chunk

    # -- the rest -------------------------------------------------------------------------------------------------

    def do_step(self):
        if self.steps and self.maybe():
            owner, name = self.steps.pop(self.random.randrange(len(self.steps)))
            self.send("STEP_FINISHED", owner, stepName=name)
        elif (step := (self.owner(), self.choose("ab"))) not in self.steps:
            self.steps.append(step)
            self.send("STEP_STARTED", step[0], stepName=step[1])

    def do_state(self):
        n = self.random.randrange(9)
        if not isinstance(self.state, dict) or self.maybe(0.2):
            self.state = {"n": n, "list": [1, {"deep": True}]}
            self.send("STATE_SNAPSHOT", self.owner(), snapshot=self.state)
        else:
            patches = [
                [{"op": "replace", "path": "/n", "value": n}],
                [{"op": "add", "path": "/list/-", "value": {"n": n}}],
                [{"op": "add", "path": "/list/0", "value": None}, {"op": "remove", "path": "/list/0"}],
                [
                    {"op": "copy", "from": "/list", "path": "/list/-"},
                    {"op": "test", "path": "/n", "value": self.state["n"]},
                ],
                [],
            ]
            patch = self.choose(patches)
            if patch and patch[0]["op"] == "replace":
                self.state = {**self.state, "n": n}
            self.send("STATE_DELTA", self.owner(), delta=patch)

    def do_activity(self):
        listed = [id_ for id_ in self.activities if id_ in self.listed()]
        if not listed or self.maybe(0.3):
            id_, owner = self.fresh("y"), self.owner()
        else:
            id_, owner = self.choose(listed), self.owner()
            if self.maybe():
                patch = [{"op": "add", "path": f"/{self.choose('ab')}", "value": [1]}]
                tag = (
                    self.choose([None, self.activities[id_][1]])
                    if self.activities[id_][0] is self.announced
                    else None
                )
                self.send(
                    "ACTIVITY_DELTA",
                    tag,
                    messageId=id_,
                    activityType=self.choose(["plan", "search"]),
                    patch=patch,
                )
                return
            if self.maybe(0.3):
                self.send("ACTIVITY_SNAPSHOT", messageId=id_, activityType="plan", content={}, replace=False)
                return
        self.activities[id_] = self.announced, owner  # the list of this run stands for the run
        self.send("ACTIVITY_SNAPSHOT", owner, messageId=id_, activityType="plan", content={"n": self.count})

    def do_note(self):
        if self.maybe():
            self.send("CUSTOM", self.owner(), name="app.note", value=self.choose([None, {"a": [1]}]))
        else:
            self.send("RAW", self.owner(), event=self.choose([None, "x"]), source="there")

    def do_snapshot(self):
        if self.maybe(0.4):
            return
        for kind, id_ in list(self.open):
            self.end(kind, id_)
        messages = [m for m in self.ledger.messages if self.maybe(0.7)]
        held = {call["id"] for message in messages for call in message.get("toolCalls", ())}
        messages = [m for m in messages if m["role"] != "tool" or m["toolCallId"] in held]
        if self.maybe(0.3):
            messages = [m for m in messages if m["role"] not in {"activity", "reasoning"}]
        if messages and self.maybe():
            message = self.choose(messages)
            if isinstance(message.get("content"), str):
                message["content"] += "!"
        if self.maybe():
            content = self.choose([self.choose(WORDS), [{"type": "text", "text": "part"}]])
            new = {"id": self.fresh("h"), "role": "user", "content": content, **tagged(self.owner())}
            messages.insert(self.random.randrange(len(messages) + 1), new)
        self.send("MESSAGES_SNAPSHOT", messages=messages)
        listed = self.listed()
        self.reopenable = {id_: label for id_, label in self.reopenable.items() if id_ in listed}
        self.calls = {id_: call for id_, call in self.calls.items() if id_ in self.listed_calls()}

    def listed(self):
        return {message["id"]: message["role"] for message in self.ledger.messages}

    def listed_calls(self):
        return [call["id"] for message in self.ledger.messages for call in message.get("toolCalls", ())]
