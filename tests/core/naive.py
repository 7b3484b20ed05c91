"""A second reader of a stream, as naive as can be.

It imports nothing of byline, so that the attributor and the validator cannot be wrong together: it keeps one
list per owner, refuses whatever it does not understand, and knows no rule that it could apply too kindly.
"""

import json
from collections import defaultdict


class Refused(AssertionError):
    pass


def refuse(condition, why, event):
    if condition:
        raise Refused(f"{why}: {event}")


class Replay:
    """What each owner did, in order; `None` is the parent agent."""

    def __init__(self):
        self.deltas = defaultdict(list)  # owner -> [(kind, delta)]
        self.messages = defaultdict(dict)  # owner -> {message id: text}
        self.calls = defaultdict(dict)  # owner -> {call id: [name, arguments]}
        self.results = defaultdict(list)  # owner -> [(call id, content)]
        self.customs = defaultdict(list)
        self.states = []
        self.announced = []  # SUBAGENT_STARTED events
        self.ended = {}  # id -> "finished" | "suspended" | error code
        self.end = None
        self._active = set()
        self._open = {}  # (kind, id) -> owner
        self._kind = {}  # id -> (kind, owner), for the whole run
        self._steps = set()

    def line(self, line):
        self.event(json.loads(line))

    def event(self, event):
        refuse(self.end is not None, "after the end", event)
        kind = event["type"]
        owner = event.get("subagentRunId")
        refuse("subagentRunId" in event and owner is None, "null tag", event)
        refuse(kind == "RUN_STARTED" and self.announced, "late start", event)
        if owner is not None and not kind.startswith("SUBAGENT"):
            refuse(owner not in {e["subagentRunId"] for e in self.announced}, "not announced", event)
        handler = getattr(self, "on_" + kind.lower(), None)
        refuse(handler is None, "unknown type", event)
        handler(event, owner)

    def _start(self, kind, id_, owner, event):
        refuse((kind, id_) in self._open, "already open", event)
        known = self._kind.setdefault(id_, (kind, owner))
        refuse(known != (kind, owner), f"id of another: {known}", event)
        self._open[(kind, id_)] = owner

    def _go_on(self, kind, id_, owner, event):
        refuse(self._open.get((kind, id_), "nobody") != owner, "not open under this owner", event)

    def on_run_started(self, event, owner):
        pass

    def on_subagent_started(self, event, owner):
        refuse(owner in {e["subagentRunId"] for e in self.announced}, "announced twice", event)
        parent = event.get("parentSubagentRunId")
        refuse(
            parent is not None and parent not in {e["subagentRunId"] for e in self.announced},
            "no parent",
            event,
        )
        self.announced.append(event)
        self._active.add(owner)

    def _closing(self, event, owner, how):
        refuse(owner not in self._active, "not active", event)
        refuse(owner in self._open.values(), "closed with something open", event)
        self._active.discard(owner)
        self.ended[owner] = how

    def on_subagent_finished(self, event, owner):
        outcome = event.get("outcome", {"type": "success"})["type"]
        self._closing(event, owner, "finished" if outcome == "success" else outcome)

    def on_subagent_error(self, event, owner):
        self._closing(event, owner, event.get("code", "error"))

    def on_text_message_start(self, event, owner):
        self._start("text", event["messageId"], owner, event)

    def on_text_message_content(self, event, owner):
        self._go_on("text", event["messageId"], owner, event)
        self.deltas[owner].append(("text", event["delta"]))
        texts = self.messages[owner]
        texts[event["messageId"]] = texts.get(event["messageId"], "") + event["delta"]

    def on_text_message_end(self, event, owner):
        self._go_on("text", event["messageId"], owner, event)
        del self._open[("text", event["messageId"])]

    def on_reasoning_start(self, event, owner):
        self._open[("span", event["messageId"])] = owner

    def on_reasoning_end(self, event, owner):
        refuse(self._open.pop(("span", event["messageId"]), "nobody") != owner, "span not open", event)

    def on_reasoning_message_start(self, event, owner):
        self._go_on("span", event["messageId"], owner, event)
        self._start("reasoning", event["messageId"], owner, event)

    def on_reasoning_message_content(self, event, owner):
        self._go_on("reasoning", event["messageId"], owner, event)
        self.deltas[owner].append(("reasoning", event["delta"]))

    def on_reasoning_message_end(self, event, owner):
        self._go_on("reasoning", event["messageId"], owner, event)
        del self._open[("reasoning", event["messageId"])]

    def on_tool_call_start(self, event, owner):
        self._start("call", event["toolCallId"], owner, event)
        parent = event["parentMessageId"]
        known = self._kind.setdefault(parent, ("text", owner))
        refuse(known != ("text", owner), f"call in a message of another: {known}", event)
        self.calls[owner].setdefault(event["toolCallId"], [event["toolCallName"], ""])

    def on_tool_call_args(self, event, owner):
        self._go_on("call", event["toolCallId"], owner, event)
        self.deltas[owner].append(("arguments", event["delta"]))
        self.calls[owner][event["toolCallId"]][1] += event["delta"]

    def on_tool_call_end(self, event, owner):
        self._go_on("call", event["toolCallId"], owner, event)
        del self._open[("call", event["toolCallId"])]

    def on_tool_call_result(self, event, owner):
        refuse(event["messageId"] in self._kind, "result under an id in use", event)
        answered = {call for many in self.results.values() for call, _ in many}
        refuse(event["toolCallId"] in answered, "answered twice", event)
        self._kind[event["messageId"]] = ("result", owner)
        self.results[owner].append((event["toolCallId"], event["content"]))

    def on_activity_snapshot(self, event, owner):
        known = self._kind.setdefault(event["messageId"], ("activity", owner))
        refuse(known != ("activity", owner), f"activity under an id of another: {known}", event)

    def on_step_started(self, event, owner):
        refuse((owner, event["stepName"]) in self._steps, "step open twice", event)
        self._steps.add((owner, event["stepName"]))

    def on_step_finished(self, event, owner):
        refuse((owner, event["stepName"]) not in self._steps, "step not open", event)
        self._steps.discard((owner, event["stepName"]))

    def on_state_snapshot(self, event, owner):
        self.states.append(event["snapshot"])

    def on_state_delta(self, event, owner):
        state = dict(self.states[-1])
        for operation in event["delta"]:
            refuse(operation["op"] != "add" or operation["path"].count("/") != 1, "unexpected patch", event)
            state[operation["path"][1:].replace("~1", "/").replace("~0", "~")] = operation["value"]
        self.states.append(state)

    def on_custom(self, event, owner):
        self.customs[owner].append((event["name"], event["value"]))

    def on_raw(self, event, owner):
        pass

    def _ends(self, event):
        refuse(bool(self._open), f"still open {self._open}", event)
        refuse(bool(self._active), f"still active {self._active}", event)
        refuse(bool(self._steps), f"steps still open {self._steps}", event)
        self.end = event

    def on_run_finished(self, event, owner):
        outcome = event.get("outcome", {})
        if "pendingToolCallIds" in outcome:
            answered = {call for many in self.results.values() for call, _ in many}
            started = {call for calls in self.calls.values() for call in calls}
            refuse(
                set(outcome["pendingToolCallIds"]) != started - answered, "pending is not what is open", event
            )
        self._ends(event)

    def on_run_error(self, event, owner):
        self._ends(event)
