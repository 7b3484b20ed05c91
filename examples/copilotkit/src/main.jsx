import "@copilotkit/react-core/v2/styles.css";
import {
  CopilotChat,
  CopilotChatAssistantMessage,
  CopilotKit,
  useAgent,
  useDefaultRenderTool,
  useInterrupt,
} from "@copilotkit/react-core/v2";
import { createContext, useContext, useEffect, useState } from "react";
import { createRoot } from "react-dom/client";

const Team = createContext({});

/** The subagents of this thread, by `subagentRunId`: their names, and how they stand. */
function useTeam() {
  const { agent } = useAgent();
  const [team, setTeam] = useState({});
  useEffect(() => {
    const note = (event, more) =>
      setTeam((known) => ({ ...known, [event.subagentRunId]: { ...known[event.subagentRunId], ...more } }));
    const subscription = agent.subscribe({
      onSubagentStartedEvent: ({ event }) => note(event, { name: event.name, status: "at work" }),
      onSubagentFinishedEvent: ({ event }) =>
        note(event, { status: event.outcome?.type === "suspended" ? "waits for you" : "done" }),
      onSubagentErrorEvent: ({ event }) => note(event, { status: `failed: ${event.message}` }),
      onRunFinalized: () => setTeam(stopped),
    });
    return () => subscription.unsubscribe();
  }, [agent]);
  return team;
}

/** The run is over: who is still at work then was stopped with it. */
const stopped = (team) =>
  Object.fromEntries(
    Object.entries(team).map(([id, one]) => [id, one.status === "at work" ? { ...one, status: "stopped" } : one]),
  );

/** A message under the name of the subagent that wrote it; the parent agent's own has no tag, and no line. */
function Message(props) {
  const author = useContext(Team)[props.message.subagentRunId];
  return (
    <div data-author={author?.name ?? "parent agent"}>
      {author && (
        <div style={{ fontSize: 13, opacity: 0.7, marginTop: 12 }}>
          <b>{author.name}</b> · {author.status}
        </div>
      )}
      <CopilotChatAssistantMessage {...props} />
    </div>
  );
}

function Chat() {
  useDefaultRenderTool();
  useInterrupt({
    render: ({ interrupt, resolve, cancel }) => (
      <div role="group" aria-label="approval" style={{ border: "1px solid", borderRadius: 8, padding: 12 }}>
        <p>{interrupt.message}</p>
        <button onClick={() => resolve("approved")}>Yes</button> <button onClick={() => cancel()}>No</button>
      </div>
    ),
  });
  return (
    <Team value={useTeam()}>
      <div style={{ height: "100vh" }}>
        <CopilotChat messageView={{ assistantMessage: Message }} />
      </div>
    </Team>
  );
}

createRoot(document.getElementById("root")).render(
  <CopilotKit runtimeUrl="/api/copilotkit" enableInspector={false}>
    <Chat />
  </CopilotKit>,
);
