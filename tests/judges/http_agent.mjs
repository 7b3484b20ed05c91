// The official HttpAgent against a running endpoint.
//
//     node http_agent.mjs CLIENT_DIRECTORY URL
//
// Runs the agent, answers every interrupt, and prints one line of JSON: the messages as the client has them, the
// invocations it was told of, and how each run ended.

import { createRequire } from "node:module";
import { join } from "node:path";

const require = createRequire(join(process.argv[2], "package.json"));
const { HttpAgent } = require("@ag-ui/client");

console.warn = () => {};
console.debug = () => {};

const agent = new HttpAgent({
  url: process.argv[3],
  threadId: "http-agent",
  initialMessages: [{ id: "question", role: "user", content: "go" }],
});
const events = [];
const outcomes = [];
const subscriber = {
  onEvent: ({ event }) => void events.push(event),
  onRunFinishedEvent: ({ event }) => void outcomes.push(event.outcome),
  onRunErrorEvent: ({ event }) => void outcomes.push({ type: "error", message: event.message }),
};

await agent.runAgent({ runId: "run-1" }, subscriber);
for (let number = 2; agent.pendingInterrupts?.length && number < 5; number += 1) {
  const resume = agent.pendingInterrupts.map((one) => ({ interruptId: one.id, status: "resolved", payload: "approved" }));
  await agent.runAgent({ runId: `run-${number}`, resume }, subscriber);
}
console.log(JSON.stringify({ messages: agent.messages, events, outcomes }));
