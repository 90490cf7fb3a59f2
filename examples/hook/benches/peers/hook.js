// The same hook in JavaScript: identical calls in a row, counted over processes.
const fs = require("fs");
const path = require("path");
const { createHash } = require("crypto");

const sorted = (value) =>
  Array.isArray(value)
    ? value.map(sorted)
    : value && typeof value === "object"
      ? Object.fromEntries(Object.keys(value).sort().map((key) => [key, sorted(value[key])]))
      : value;
const hash = (value) => createHash("sha256").update(JSON.stringify(sorted(value))).digest("hex");

const event = JSON.parse(fs.readFileSync(0, "utf8"));
const cache = path.join(process.env.HOME, ".cache", "bizar-node");
fs.mkdirSync(path.join(cache, "logs"), { recursive: true });
const file = path.join(cache, `${event.session_id}.json`);
let state = { ring: [], open: {}, calls: [] };
try {
  state = JSON.parse(fs.readFileSync(file, "utf8"));
} catch {}
const fingerprint = hash({ args: event.tool_input, tool: event.tool_name });
if (event.hook_event_name === "PreToolUse") {
  state.open[event.tool_use_id] = fingerprint;
  let stale = 0;
  while (stale < state.ring.length && state.ring[state.ring.length - 1 - stale][0] === fingerprint) stale += 1;
  if (stale >= 11) {
    console.log(JSON.stringify({ hookSpecificOutput: { hookEventName: "PreToolUse", permissionDecision: "deny" } }));
  }
} else {
  delete state.open[event.tool_use_id];
  state.ring = [...state.ring, [fingerprint, hash(event.tool_response)]].slice(-48);
  state.calls = [...state.calls, { tool: event.tool_name, at: Date.now() }].slice(-50);
  const line = `${Date.now()} tool=${event.tool_name} fingerprint=${fingerprint.slice(0, 12)} outcome=ok\n`;
  fs.appendFileSync(path.join(cache, "logs", `${event.session_id}.log`), line);
}
fs.writeFileSync(`${file}.new`, JSON.stringify(state));
fs.renameSync(`${file}.new`, file);
