import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";
import { listener, path } from "./runtime.js";

// The runtime is a plain Node listener; here it is part of the development server.
const copilotkit = {
  name: "copilotkit",
  configureServer({ middlewares }) {
    middlewares.use((request, response, next) =>
      request.url.startsWith(path) ? listener(request, response) : next());
  },
};

export default defineConfig({ plugins: [react(), copilotkit] });
