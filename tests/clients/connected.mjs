// The official TypeScript SDK's client, its first line of versions or its second, in each mode, on a
// server that it starts, or over HTTP. Any error outside a request ends the process.

import assert from "node:assert/strict";

export async function connected([choice, command, ...args]) {
  const who = { name: "walk", version: "1" };
  const first = "@modelcontextprotocol/sdk/client";
  const second = "@modelcontextprotocol/client";
  if (choice === "v1") {
    const { Client } = await import(`${first}/index.js`);
    const { StdioClientTransport } = await import(`${first}/stdio.js`);
    const { StreamableHTTPClientTransport } = await import(`${first}/streamableHttp.js`);
    const transports = { StdioClientTransport, StreamableHTTPClientTransport };
    return opened(new Client(who), transport(transports, command, args));
  }
  const { Client, StreamableHTTPClientTransport } = await import(second);
  const { StdioClientTransport } = await import(`${second}/stdio`);
  const transports = { StdioClientTransport, StreamableHTTPClientTransport };
  const modes = { "v2-legacy": "legacy", "v2-auto": "auto", "v2-pinned": { pin: "2026-07-28" } };
  const client = new Client(who, { versionNegotiation: { mode: modes[choice] } });
  return opened(client, transport(transports, command, args));
}

// A command with its arguments, or an address with a token.
function transport({ StdioClientTransport, StreamableHTTPClientTransport }, command, args) {
  if (!command.startsWith("http")) {
    return new StdioClientTransport({ command, args, env: { ...process.env } });
  }
  const headers = { Authorization: `Bearer ${args[0]}` };
  return new StreamableHTTPClientTransport(new URL(command), { requestInit: { headers } });
}

async function opened(client, transport) {
  client.onerror = (error) => assert.fail(error);
  await client.connect(transport);
  return client;
}
