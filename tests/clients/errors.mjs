// What the official TypeScript SDK's client makes of a tool's error and of a tool that is none.
//
// node errors.mjs CLIENT COMMAND ARGUMENT...   CLIENT: v1, v2-legacy, v2-auto, v2-pinned
// node errors.mjs CLIENT URL TOKEN

import assert from "node:assert/strict";
import { connected } from "./connected.mjs";

const client = await connected(process.argv.slice(2));
await client.listTools();

const missing = await client.callTool({ name: "get_document", arguments: { id: "missing" } });
console.log(JSON.stringify(missing));
assert.equal(missing.isError, true);
assert.equal(missing.structuredContent.error.code, "E_NOT_FOUND");
assert.deepEqual(JSON.parse(missing.content[0].text), missing.structuredContent);
await assert.rejects(client.callTool({ name: "no_such_tool", arguments: {} }), { code: -32602 });

await client.close();
