// The dashboard is part of the package: `npm run build` puts it into dist/dashboard. While one works on
// it, `npx vite --config dashboard/vite.config.ts` serves it beside a service that runs already; there
// every request carries MILLRACE_ADMIN_KEY, so that nobody has to sign in.

import { resolve } from "node:path";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

const root = import.meta.dirname;
const { MILLRACE_URL = "http://127.0.0.1:7070", MILLRACE_ADMIN_KEY } = process.env;
const authorization = MILLRACE_ADMIN_KEY && { authorization: `Bearer ${MILLRACE_ADMIN_KEY}` };
const service = { target: MILLRACE_URL, headers: { ...authorization } };

export default defineConfig({
  root,
  plugins: [react()],
  build: {
    outDir: resolve(root, "../dist/dashboard"),
    emptyOutDir: true,
    target: "es2022",
    // The content security policy allows files of our own and nothing inside others.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    // What travels at first is limited by scripts/check-dashboard.mjs, compressed.
    chunkSizeWarningLimit: 700,
    rolldownOptions: { checks: { bundlerTimings: false } },
  },
  server: { proxy: { "/api": service, "/healthz": service, "/readyz": service } },
});
