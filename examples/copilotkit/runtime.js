// CopilotKit's runtime: the browser talks to it, and it talks to `byline serve`.

import { HttpAgent } from "@ag-ui/client";
import { CopilotRuntime, InMemoryAgentRunner } from "@copilotkit/runtime/v2";
import { createCopilotNodeListener } from "@copilotkit/runtime/v2/node";

export const path = "/api/copilotkit";

export const listener = createCopilotNodeListener({
  runtime: new CopilotRuntime({
    agents: { default: new HttpAgent({ url: process.env.BYLINE_URL ?? "http://127.0.0.1:8000/" }) },
    runner: new InMemoryAgentRunner(),
  }),
  basePath: path,
});
