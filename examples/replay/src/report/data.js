"use strict";
// What the report knows: parsed once, sums made once. Recorded text reaches the page through `el` and `visible` alone, as text.

const DATA = JSON.parse(document.getElementById("data").textContent);
const LEVELS = ["allow", "notice", "warn", "escalate", "block", "halt"];
const MEANING = [
  "nothing to say", "a line in a log", "the agent is told", "the agent is told again",
  "the call is refused", "the run is ended",
];

/** Makes an element. Strings become text, never markup. */
function el(name, attributes, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value === true) element.setAttribute(key, "");
    else if (value !== false && value != null) element.setAttribute(key, value);
  }
  element.append(...children.filter((child) => child != null));
  return element;
}

const byId = (id) => document.getElementById(id);

/** Recorded text with what cannot be seen, or turns the writing direction, spelled out. */
function visible(text) {
  return String(text).replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g,
    (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));
}

/** The same, kept from mixing its direction with the text around it. */
const isolated = (text, kind) => el("bdi", { class: kind }, visible(text));

const number = new Intl.NumberFormat("en").format;
const plural = (n, noun) => `${number(n)} ${noun}${n === 1 ? "" : "s"}`;
const percent = (part, whole) => {
  const share = whole ? (100 * part) / whole : 0;
  return (share === 0 || share >= 10 ? share.toFixed(0) : share.toFixed(1)) + " %";
};

function duration(ms) {
  if (ms == null) return "–";
  const s = ms / 1000;
  if (s < 1) return `${Math.round(ms)} ms`;
  if (s < 10) return `${s.toFixed(1)} s`;
  if (s < 60) return `${Math.round(s)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${Math.round(s % 60)} s`;
  return `${number(Math.floor(s / 3600))} h ${Math.round((s % 3600) / 60)} min`;
}

const colours = {};
/** Colours of the current scheme, for canvases. */
function readColours() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["card", "ink", "soft", "line", "hover", "focus", "fresh", "stale", "notice", "warn", "escalate", "block", "halt", "band", "band2"]) {
    colours[name] = style.getPropertyValue("--" + name).trim();
  }
}

/** Call `i` of a session: what it is and what was said about it. */
function callOf(session, i) {
  const print = session.call[i];
  return {
    i, print: session.prints[print], tool: DATA.tools[session.tools[print]], toolNumber: session.tools[print],
    args: session.args ? session.args[print] : undefined,
    level: session.level[i], rule: session.rule[i], ok: session.ok[i], isPoll: session.kind[i] === "p",
    count: session.count[i], period: session.period[i], back: session.back[i], ms: session.ms[i] < 0 ? null : session.ms[i],
  };
}

const isWaste = (session, i) => session.back[i] > 0 && session.kind[i] !== "p";

/** Why a call got its verdict, in words. */
function reason(call) {
  const { count, period } = call;
  switch (call.rule) {
    case "s": return `${count} calls and nothing new` + (period > 1 ? `: a circle of ${period}` : "");
    case "c": return `a pattern of ${plural(period, "call")} came round for the third time`;
    case "r": return `the same call ${count} times in a row`;
    case "f": return `${count} equal calls in one message`;
    case "p": return `${count} looks at something that has not changed`;
    case "e": return `the tool failed the same way ${count} times`;
    case "w": return `the same call ${count} times among the last ones`;
    case "h": return `${count} refused calls and no progress`;
    case "o": return `the rule of ${DATA.mode} fired: ${count}`;
    default: return call.isPoll ? "it waits" + (call.back ? ", and nothing has changed" : "") : call.back ? "same call, same answer as before" : "something new";
  }
}

/** One session: sums over its columns. */
function derive(session, number) {
  const n = session.call.length;
  session.number = number;
  session.n = n;
  session.level = Array.from(session.verdict, Number);
  session.waste = 0;
  session.time = null;
  session.wasteTime = null;
  session.worst = 0;
  session.levels = [0, 0, 0, 0, 0, 0];
  for (let i = 0; i < n; i++) {
    const ms = session.ms[i];
    if (ms >= 0) session.time += ms;
    // Waiting brings nothing new and is no waste.
    if (isWaste(session, i)) {
      session.waste++;
      if (ms >= 0) session.wasteTime += ms;
    }
    session.levels[session.level[i]]++;
    if (session.level[i] > session.worst) session.worst = session.level[i];
  }
  if (session.time != null && session.wasteTime == null) session.wasteTime = 0;
  session.text = (session.name + " " + session.tools.map((tool) => DATA.tools[tool]).join(" ")).toLowerCase();
  return session;
}

const sessions = DATA.sessions.map(derive);
const total = sessions.reduce((sum, session) => {
  sum.calls += session.n;
  sum.waste += session.waste;
  if (session.time != null) sum.time += session.time;
  if (session.wasteTime != null) sum.wasteTime += session.wasteTime;
  if (session.worst >= 2) sum.warned++;
  session.levels.forEach((count, level) => (sum.levels[level] += count));
  return sum;
}, { calls: 0, waste: 0, time: null, wasteTime: null, warned: 0, levels: [0, 0, 0, 0, 0, 0] });

/** A little square in the colour of a level. */
const swatch = (colour) => el("span", { class: "swatch", style: `background:var(--${colour})`, "aria-hidden": "true" });
const levelColour = (level) => (level === 0 ? "fresh" : LEVELS[level]);
const tag = (level) => el("span", { class: "tag" }, swatch(levelColour(level)), LEVELS[level]);

/** A canvas as sharp as the screen is. */
function sized(canvas, width, height) {
  const ratio = Math.min(window.devicePixelRatio || 1, 3);
  const wide = Math.max(1, Math.round(width * ratio)), high = Math.round(height * ratio);
  // Setting a size, even the same one, costs a new canvas.
  if (canvas.width !== wide || canvas.height !== high) {
    canvas.width = wide;
    canvas.height = high;
    canvas.style.width = width + "px";
    canvas.style.height = height + "px";
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}
