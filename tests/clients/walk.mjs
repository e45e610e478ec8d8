// All seven tools through the official TypeScript SDK's client, which checks every answer against
// the tool's own output schema.
//
// node walk.mjs CLIENT COMMAND ARGUMENT...   CLIENT: v1, v2-legacy, v2-auto, v2-pinned
// node walk.mjs CLIENT URL TOKEN

import assert from "node:assert/strict";
import { connected } from "./connected.mjs";

const choice = process.argv[2];
const client = await connected(process.argv.slice(2));

async function call(name, given = {}) {
  const result = await client.callTool({ name, arguments: given });
  assert.deepEqual(JSON.parse(result.content[0].text), result.structuredContent);
  console.log(`${name} ${JSON.stringify(result.structuredContent)}`);
  assert.equal(result.isError, false);
  return result.structuredContent;
}

const { name, version } = client.getServerVersion();
console.log(`${choice}: ${name} ${version}`);
const { tools } = await client.listTools();
console.log(`tools: ${tools.map((tool) => tool.name).join(", ")}`);
assert.equal(tools.length, 7);

await call("store_document", {
  id: "runbook",
  title: "Rollback 検索",
  content: "How we roll a release back.",
  tags: ["ops"],
  relations: [{ src: "Rollback", rel: "needs", dst: "Backup" }],
});
const found = await call("search_documents", { query: "release 検索" });
const seed = found.documents[0].matched_chunks[0].chunk_id;
const related = await call("search_knowledge", { seed_chunk_ids: [seed] });
assert.equal(related.related_edges.length, 1);
const graph = await call("query_graph", { node: "Backup" });
assert.deepEqual(graph.nodes, ["Backup", "Rollback"]);
const document = await call("get_document", { id: "runbook" });
assert.equal(document.content, "How we roll a release back.");
await call("delete_document", { id: "runbook" });
const status = await call("db_status");
assert.equal(status.docs, 0);

await client.close();
console.log(`${choice}: all seven tools answered`);
