// A client of the Agent Client Protocol, by the TypeScript SDK: node acp_client.mjs SDK FOLDER COMMAND...
// Runs through a session, checks what the SDK itself checks of each message, and prints what it saw as JSON.
import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const [sdk, cwd, command, ...args] = process.argv.slice(2);
const acp = await import(pathToFileURL(`${sdk}/dist/v1/unstable/acp.js`));
const m = acp.methods;
const child = spawn(command, args, { cwd, stdio: ["pipe", "pipe", "inherit"] });
const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
const seen = { updates: [], asked: [], reads: [], writes: [], forms: [] };
let running = () => {};

const app = acp
  .client({ name: "interop" })
  .onRequest(m.client.session.requestPermission, ({ params }) => {
    seen.asked.push({ title: params.toolCall.title, kinds: params.options.map((one) => one.kind) });
    const chosen = params.options.find((one) => one.kind === "allow_once");
    return { outcome: { outcome: "selected", optionId: chosen.optionId } };
  })
  .onNotification(m.client.session.update, ({ params }) => {
    seen.updates.push({ session: params.sessionId, ...params.update });
    if (params.update.rawInput?.command === "sleep 1000" && params.update.status === "in_progress") running();
  })
  .onRequest(m.client.fs.readTextFile, ({ params }) => {
    seen.reads.push(params.path);
    return { content: readFileSync(params.path, "utf8") };
  })
  .onRequest(m.client.fs.writeTextFile, ({ params }) => {
    seen.writes.push(params.path);
    writeFileSync(params.path, params.content);
    return {};
  })
  .onRequest(m.client.elicitation.create, ({ params }) => {
    seen.forms.push(params.message);
    const [name, property] = Object.entries(params.requestedSchema.properties)[0];
    const value = property.oneOf?.[0]?.const ?? property.enum?.[0] ?? "red";
    return { action: "accept", content: { [name]: value } };
  });

const result = await app.connectWith(stream, async (agent) => {
  const ask = (method, params) => agent.request(method, params);
  const say = (sessionId, text) => ask(m.agent.session.prompt, { sessionId, prompt: [{ type: "text", text }] });
  const initialized = await ask(m.agent.initialize, {
    protocolVersion: acp.PROTOCOL_VERSION,
    clientInfo: { name: "interop", version: "1" },
    clientCapabilities: { fs: { readTextFile: true, writeTextFile: true }, elicitation: { form: {} } },
  });
  const opened = await ask(m.agent.session.new, { cwd, mcpServers: [] });
  const id = opened.sessionId;
  const edited = await say(id, "edit it");
  const asked = await say(id, "which color?");
  await ask(m.agent.session.setMode, { sessionId: id, modeId: "accept-edits" });
  await ask(m.agent.session.setConfigOption, { sessionId: id, configId: "mode", value: "default" });
  const begun = new Promise((resolve) => { running = resolve; });
  const turn = say(id, "run it");
  await begun;
  await agent.notify(m.agent.session.cancel, { sessionId: id });
  const cancelled = await turn;
  const command = await say(id, "/status");
  const listed = await ask(m.agent.session.list, { cwd });
  const forked = await ask("session/fork", { sessionId: id, cwd, mcpServers: [] });
  await ask(m.agent.session.close, { sessionId: id });
  const before = seen.updates.length;
  await ask(m.agent.session.load, { sessionId: id, cwd, mcpServers: [] });
  const replayed = seen.updates.slice(before).map((one) => one.sessionUpdate);
  await ask(m.agent.session.resume, { sessionId: id, cwd, mcpServers: [] });
  await ask(m.agent.session.delete, { sessionId: id });
  const left = await ask(m.agent.session.list, { cwd });
  const wrong = await ask(m.agent.session.load, { sessionId: id, cwd, mcpServers: [] }).catch((error) => error.code);
  return {
    initialized, opened, forked: forked.sessionId, replayed, wrong,
    stops: [edited, asked, cancelled, command].map((one) => one.stopReason),
    listed: listed.sessions.map((one) => one.sessionId),
    left: left.sessions.map((one) => one.sessionId),
  };
});
child.stdin.end();
const code = await new Promise((resolve) => child.on("exit", resolve));
console.log(JSON.stringify({ ...result, ...seen, code }));
