// The official TypeScript SDK's client, its first line of versions or its second, in each mode, on a
// server that it starts. Any error outside a request ends the process.

import assert from "node:assert/strict";

export async function connected([choice, command, ...args]) {
  const server = { command, args, env: { ...process.env } };
  const who = { name: "walk", version: "1" };
  if (choice === "v1") {
    const { Client } = await import("@modelcontextprotocol/sdk/client/index.js");
    const { StdioClientTransport } = await import("@modelcontextprotocol/sdk/client/stdio.js");
    return opened(new Client(who), new StdioClientTransport(server));
  }
  const { Client } = await import("@modelcontextprotocol/client");
  const { StdioClientTransport } = await import("@modelcontextprotocol/client/stdio");
  const modes = { "v2-legacy": "legacy", "v2-auto": "auto", "v2-pinned": { pin: "2026-07-28" } };
  const client = new Client(who, { versionNegotiation: { mode: modes[choice] } });
  return opened(client, new StdioClientTransport(server));
}

async function opened(client, transport) {
  client.onerror = (error) => assert.fail(error);
  await client.connect(transport);
  return client;
}
