// The official client's reading of recorded streams.
//
//     node replay.mjs CLIENT_DIRECTORY < files.txt > readings.jsonl
//
// Takes the names of JSONL files, one a line; gives one line of JSON for each: what `runAgent` of @ag-ui/client makes of
// the stream, through its whole pipeline (compatibility, schema, chunks, verification, apply).

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const require = createRequire(join(process.argv[2], "package.json"));
const { AbstractAgent } = require("@ag-ui/client");
const { from } = require("rxjs");

console.warn = () => {}; // what it warns of is not compared, and there is much of it
console.error = () => {};
console.debug = () => {};

class Replay extends AbstractAgent {
  constructor(events) {
    // The state that a client has is the one it sends; a stream shows it where the producer echoes the input.
    const input = events.find((event) => event.type === "RUN_STARTED")?.input;
    super({ threadId: "replay", initialState: input?.state });
    this.events = events;
  }

  run() {
    return from(this.events);
  }
}

async function reading(file) {
  const lines = readFileSync(file, "utf8").split("\n").filter((line) => line.trim());
  const agent = new Replay(lines.map((line) => JSON.parse(line)));
  let error = null;
  try {
    await agent.runAgent();
  } catch (thrown) {
    error = String(thrown?.message ?? thrown);
  }
  return { file, error, messages: agent.messages, state: agent.state, interrupts: agent.pendingInterrupts };
}

for (const file of readFileSync(0, "utf8").split("\n").filter(Boolean)) {
  process.stdout.write(JSON.stringify(await reading(file)) + "\n");
}
