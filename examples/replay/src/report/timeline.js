// One session as a picture: the count on its ladder, a row of marks for each tool, arcs from each repeat to what it repeats. A canvas draws
// only what is in sight, so a session of a hundred thousand calls costs as much as one of a hundred; the words beside it say the same.

const shown = { session: null, i: 0, zoom: 1, paper: 0, starts: [], lanes: [], laneOf: [], bands: [] };
const PAD = 16, TOP = 26, LADDER = 112, LANE = 21, ARCS = 84, LANES = 8;
const HIGHEST = 13;
const THRESHOLDS = [[3, 1], [5, 2], [8, 3], [12, 4]];

/** Width of the picture: what the window leaves, or what fits on paper. */
const wide = () => shown.paper || byId("scroll").clientWidth;
const ladderY = (count) => TOP + LADDER - (Math.min(count, HIGHEST) / HIGHEST) * LADDER;
const lanesTop = () => TOP + LADDER + 30;
const arcsTop = () => lanesTop() + shown.lanes.length * LANE + 4;
const x = (i) => PAD + shown.starts[i] * shown.zoom;
const middle = (i) => (x(i) + x(i + 1)) / 2;

function showSession(session) {
  shown.session = session;
  measure(session);
  findBands(session);
  fit(false);
  byId("session-title").replaceChildren(isolated(session.name));
  const facts = [plural(session.n, "call"), plural(session.turns.length, "turn")];
  if (session.time != null) facts.push(duration(session.time));
  facts.push(session.waste ? `${plural(session.waste, "call")} brought nothing new (${percent(session.waste, session.n)})` : "every answer was new");
  const where = el("span", {}, facts.join(" · ") + " · ", isolated(DATA.files[session.file] === "-" ? "standard input" : DATA.files[session.file]));
  const parent = session.parent && sessions.find((other) => other.name === session.parent);
  if (parent) where.append(" · started by ", el("button", { onclick: () => openSession(parent.number) }, isolated(parent.name)));
  byId("session-facts").replaceChildren(where);
  byId("story").replaceChildren(...tell(session));
  const first = session.level.findIndex((level) => level >= 2);
  select(Math.max(0, first), true);
}

/** Where each mark begins, at zoom 1; and which row each tool has. */
function measure(session) {
  const starts = new Float64Array(session.n + 1);
  for (let i = 0; i < session.n; i++) {
    const ms = session.ms[i];
    starts[i + 1] = starts[i] + (ms < 0 ? 14 : 10 + Math.min(30, 4.5 * Math.log2(1 + ms / 300)));
  }
  shown.starts = starts;
  const counts = new Map();
  for (const print of session.call) counts.set(session.tools[print], (counts.get(session.tools[print]) || 0) + 1);
  const order = [...counts.keys()];
  const kept = order.length <= LANES ? order : [...order].sort((a, b) => counts.get(b) - counts.get(a)).slice(0, LANES - 1);
  shown.lanes = order.filter((tool) => kept.includes(tool)).map((tool) => visible(DATA.tools[tool]));
  const rows = new Map(order.filter((tool) => kept.includes(tool)).map((tool, row) => [tool, row]));
  if (kept.length < order.length) shown.lanes.push(`${order.length - kept.length} other tools`);
  shown.laneOf = session.tools.map((tool) => (rows.has(tool) ? rows.get(tool) : shown.lanes.length - 1));
}

/** Stretches that go round: from the first call of the first lap to the last with a verdict. */
function findBands(session) {
  shown.bands = [];
  let band = null;
  for (let i = 0; i < session.n; i++) {
    const circles = session.level[i] > 0 && session.period[i] > 0;
    if (circles && band && band.period === session.period[i] && i <= band.to + band.period) {
      band.to = i;
    } else if (circles) {
      band = { from: Math.max(0, i - session.count[i] + 1, band ? band.to + 1 : 0), to: i, period: session.period[i] };
      shown.bands.push(band);
    } else if (band && session.rule[i] === "h") {
      band.to = i;
    }
  }
}

function fit(exactly) {
  const room = wide() - 2 * PAD;
  const whole = shown.starts[shown.session.n] || 1;
  const zoom = room / whole;
  shown.zoom = Math.min(3, exactly || zoom > 0.45 ? zoom : 0.8);
  stretch();
}

function stretch() {
  byId("stretch").style.width = Math.ceil(2 * PAD + shown.starts[shown.session.n] * shown.zoom) + "px";
}

function drawTimeline() {
  const session = shown.session;
  if (!session) return;
  const frame = byId("scroll"), width = wide(), height = arcsTop() + ARCS;
  const context = sized(byId("canvas"), width, height);
  drawGutter(height);
  const left = frame.scrollLeft;
  context.translate(-left, 0);
  const from = Math.max(0, at(left) - 1), to = Math.min(session.n - 1, at(left + width) + 1);
  const calls = distinct(session, from, to);
  drawBands(context, left, left + width);
  drawLadder(context, session, calls, left, width);
  drawTurns(context, session, height, left, left + width);
  drawArcs(context, session, left, left + width);
  drawMarks(context, session, calls);
  const cursor = middle(shown.i);
  context.strokeStyle = colours.focus;
  context.lineWidth = 1.5;
  context.strokeRect(x(shown.i) - 1.5, markY(shown.i) - 2, Math.max(4, x(shown.i + 1) - x(shown.i)) , LANE);
  context.globalAlpha = 0.45;
  context.beginPath();
  context.moveTo(cursor, TOP - 4);
  context.lineTo(cursor, markY(shown.i) - 3);
  context.stroke();
  context.globalAlpha = 1;
}

/** The calls to draw: all of them, or where several share a dot of the screen, the one that got furthest. */
function distinct(session, from, to) {
  const calls = [];
  let dot = NaN;
  for (let i = from; i <= to; i++) {
    const here = Math.floor(x(i));
    const last = calls[calls.length - 1];
    if (here !== dot || x(i + 1) - x(i) > 1) calls.push(i);
    else if (session.level[i] > session.level[last]) calls[calls.length - 1] = i;
    dot = here;
  }
  return calls;
}

/** The call under a place of the picture. */
function at(place) {
  const wanted = (place - PAD) / shown.zoom;
  let low = 0, high = shown.session.n - 1;
  while (low < high) {
    const half = (low + high + 1) >> 1;
    if (shown.starts[half] <= wanted) low = half;
    else high = half - 1;
  }
  return low;
}

const markY = (i) => lanesTop() + shown.laneOf[shown.session.call[i]] * LANE;
const markColour = (session, i) => colours[session.level[i] ? LEVELS[session.level[i]] : session.back[i] ? "stale" : "fresh"];
const climbs = () => DATA.mode === "progress" || DATA.mode === "repetition";

function drawGutter(height) {
  const context = sized(byId("gutter"), 128, height);
  context.font = "12px " + getComputedStyle(document.body).fontFamily;
  context.textBaseline = "middle";
  context.textAlign = "right";
  context.direction = "ltr";
  if (climbs()) {
    for (const [count, level] of THRESHOLDS) {
      context.fillStyle = colours[LEVELS[level]];
      context.fillText(`${LEVELS[level]} ${count}`, 118, ladderY(count));
    }
  }
  context.fillStyle = colours.soft;
  context.fillText("count", 118, ladderY(0) - 2);
  shown.lanes.forEach((name, row) => {
    context.fillStyle = colours.ink;
    context.fillText(shortened(context, name, 108), 118, lanesTop() + row * LANE + 8);
  });
  context.fillStyle = colours.soft;
  context.fillText("repeats", 118, arcsTop() + 12);
}

function shortened(context, text, room) {
  if (text.length > 60) text = text.slice(0, 60) + "…";
  while (text.length > 2 && context.measureText(text).width > room) text = text.slice(0, -2) + "…";
  return text;
}

function drawBands(context, left, right) {
  const top = lanesTop() - 20, bottom = arcsTop() - 2;
  context.font = "11.5px " + getComputedStyle(document.body).fontFamily;
  context.textBaseline = "alphabetic";
  context.textAlign = "left";
  for (const band of shown.bands) {
    const end = x(band.to + 1);
    if (end < left || x(band.from) > right) continue;
    for (let lap = 0, i = band.from; i <= band.to; i += band.period, lap++) {
      context.fillStyle = lap % 2 ? colours.band2 : colours.band;
      const stop = x(Math.min(band.to + 1, i + band.period));
      context.fillRect(x(i), top, stop - x(i), bottom - top);
      if (band.period === 1 && end - x(i) > 4000) break;
    }
    const laps = Math.floor((band.to - band.from + 1) / band.period);
    const label = band.period === 1 ? `the same call, ${laps} times` : `a circle of ${band.period}, ${laps} times`;
    const place = Math.max(x(band.from), left + 4);
    if (end - place > 60) {
      context.fillStyle = colours.ink;
      context.fillText(shortened(context, label, end - place - 6), place + 4, top + 13);
    }
  }
}

function drawLadder(context, session, calls, left, width) {
  context.lineWidth = 1;
  if (climbs()) {
    for (const [count, level] of THRESHOLDS) {
      context.strokeStyle = colours[LEVELS[level]];
      context.globalAlpha = 0.35;
      context.setLineDash([3, 4]);
      line(context, left, ladderY(count), left + width, ladderY(count));
    }
    context.setLineDash([]);
    context.globalAlpha = 1;
  }
  context.strokeStyle = colours.line;
  line(context, left, ladderY(0), left + width, ladderY(0));
  for (const i of calls) {
    const y = ladderY(session.count[i]), w = Math.max(1, x(i + 1) - x(i));
    context.fillStyle = markColour(session, i);
    context.globalAlpha = session.level[i] ? 0.26 : 0.16;
    context.fillRect(x(i), y, w, ladderY(0) - y);
    context.globalAlpha = 1;
    context.fillRect(x(i), y - 1, w, 2);
    if (i > 0 && session.count[i] !== session.count[i - 1]) {
      context.fillRect(x(i) - 0.75, Math.min(y, ladderY(session.count[i - 1])), 1.5, Math.abs(y - ladderY(session.count[i - 1])));
    }
    if (w <= 2) continue;
    if (session.count[i] > HIGHEST && (i === calls[0] || session.count[i - 1] <= HIGHEST)) label(context, `${session.count[i]}…`, x(i) + 2, TOP - 2, colours.soft);
    if (!session.back[i] && i > 0 && !session.turns.includes(i) && session.count[i - 1] >= 3 && session.count[i] < session.count[i - 1]) {
      label(context, "new", x(i), ladderY(1) - 6, colours.soft);
    }
  }
}

function line(context, x1, y1, x2, y2) {
  context.beginPath();
  context.moveTo(x1, y1);
  context.lineTo(x2, y2);
  context.stroke();
}

function label(context, text, place, y, colour) {
  context.font = "11px " + getComputedStyle(document.body).fontFamily;
  context.textBaseline = "alphabetic";
  context.textAlign = "left";
  context.fillStyle = colour;
  context.fillText(text, place, y);
}

function drawTurns(context, session, height, left, right) {
  context.strokeStyle = colours.soft;
  context.lineWidth = 1;
  let last = -Infinity;
  for (const turn of session.turns) {
    const place = x(turn) - 2;
    if (place < left - 40 || place > right) continue;
    context.setLineDash([2, 3]);
    line(context, place, 16, place, height - ARCS);
    context.setLineDash([]);
    if (place - last > 64) label(context, "user wrote", place, 12, colours.soft), (last = place);
  }
}

function drawArcs(context, session, left, right) {
  const top = arcsTop();
  let dot = NaN;
  for (let i = 0; i < session.n; i++) {
    if (!session.back[i]) continue;
    const here = Math.floor(x(i));
    if (here === dot && i !== shown.i) continue;
    dot = here;
    const b = middle(i), a = middle(i - session.back[i]);
    if (b < left || a > right || b - a < 2) continue;
    const mine = i === shown.i || i - session.back[i] === shown.i;
    context.strokeStyle = mine ? colours.focus : markColour(session, i);
    context.globalAlpha = mine ? 1 : session.level[i] ? 0.75 : 0.9;
    context.lineWidth = mine ? 2.25 : 1.25;
    context.beginPath();
    context.ellipse((a + b) / 2, top, Math.max(1, (b - a) / 2), Math.min(ARCS - 8, 6 + (b - a) / 3), 0, 0, Math.PI);
    context.stroke();
  }
  context.globalAlpha = 1;
}

function drawMarks(context, session, calls) {
  for (const i of calls) {
    const level = session.level[i], tall = 9 + level * 1.5, w = Math.max(1, x(i + 1) - x(i) - (shown.zoom > 0.5 ? 3 : 0.5));
    const y = markY(i) + 8 - tall / 2;
    context.fillStyle = markColour(session, i);
    context.beginPath();
    if (context.roundRect) context.roundRect(x(i), y, w, tall, session.kind[i] === "p" ? 6 : 2);
    else context.rect(x(i), y, w, tall);
    context.fill();
    if (session.ok[i] === "-" && w > 5) {
      context.strokeStyle = colours.card;
      context.lineWidth = 1.5;
      line(context, x(i) + 1.5, y + tall - 1.5, x(i) + Math.min(w, 12) - 1.5, y + 1.5);
    }
  }
}

function drawLegend() {
  const entry = (colour, text) => el("span", { class: "tag" }, swatch(colour), text);
  byId("legend").replaceChildren(
    entry("fresh", "brought something new"), entry("stale", "nothing new"),
    ...LEVELS.slice(1).map((name, at) => entry(name, `${name}: ${MEANING[at + 1]}`)),
    el("span", {}, "slashed: the call failed"), el("span", {}, "round: it waits for something"), el("span", {}, "wide: it took long"), el("span", {}, "“new” on the ladder: something new came, counting starts again"));
}

function select(i, quietly) {
  const session = shown.session;
  shown.i = Math.max(0, Math.min(session.n - 1, i));
  const frame = byId("scroll"), call = callOf(session, shown.i);
  const place = middle(shown.i), width = wide();
  if (quietly || place < frame.scrollLeft + 40 || place > frame.scrollLeft + width - 40) frame.scrollLeft = place - width / (quietly ? 2.5 : 2);
  frame.setAttribute("aria-valuemin", 0);
  frame.setAttribute("aria-valuemax", session.n - 1);
  frame.setAttribute("aria-valuenow", shown.i);
  frame.setAttribute("aria-valuetext", sentence(call));
  describe(session, call);
  drawTimeline();
}

const sentence = (call) => `call ${call.i}, ${visible(call.tool)}, ${LEVELS[call.level]}: ${reason(call)}`;

function describe(session, call) {
  byId("call-title").textContent = `Call ${call.i} of ${number(session.n)}, counted from 0`;
  const facts = [
    ["Tool", isolated(call.tool, "mono")],
    ["Fingerprint", el("span", { class: "mono" }, call.print)],
    ["Verdict", el("span", {}, tag(call.level), ` (${MEANING[call.level]})`)],
    ["Why", reason(call)],
    ["It", { "+": "succeeded", "-": "failed or was refused", "?": "ended in a way that was not recorded" }[call.ok]],
    ["Took", duration(call.ms)],
    ["Same as", call.back ? el("button", { onclick: () => select(call.i - call.back) }, `call ${call.i - call.back}`) : "no earlier call of this turn"],
  ];
  if (session.args) facts.push(["Arguments", call.args == null ? "none" : el("pre", {}, visible(call.args))]);
  byId("call").replaceChildren(...facts.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
  const rows = [];
  for (let i = Math.max(0, call.i - 4); i <= Math.min(session.n - 1, call.i + 4); i++) {
    const other = callOf(session, i);
    rows.push(el("tr", i === call.i ? { class: "here", "aria-current": "true" } : {},
      el("td", {}, el("button", { onclick: () => select(i), "aria-label": `Show call ${i}` }, String(i))),
      el("td", {}, isolated(other.tool, "mono")), el("td", { class: "mono" }, other.print.slice(0, 6)), el("td", {}, tag(other.level)),
      el("td", {}, other.back ? `as call ${i - other.back}` : "new"), el("td", {}, duration(other.ms))));
  }
  byId("neighbours").replaceChildren(el("table", { "aria-label": "The calls around it" },
    el("thead", {}, el("tr", {}, ...["Call", "Tool", "Print", "Verdict", "Answer", "Took"].map((name) => el("th", { scope: "col" }, name)))),
    el("tbody", {}, ...rows)));
}

/** The session in words: each stretch of verdicts, how far it went and what ended it. */
function tell(session) {
  const stretches = [];
  let open = null;
  for (let i = 0; i < session.n; i++) {
    if (!session.level[i]) continue;
    if (open && i <= open.to + Math.max(1, session.period[i]) && !session.turns.some((turn) => turn > open.to && turn <= i)) open.to = i;
    else stretches.push((open = { from: i, to: i, rises: [] }));
    const last = open.rises[open.rises.length - 1];
    if (!last || session.level[i] > session.level[last]) open.rises.push(i);
  }
  const item = (level, ...content) => el("li", { style: `border-color:var(--${levelColour(level)})` }, ...content);
  if (stretches.length === 0) {
    const text = session.waste ? `${plural(session.waste, "call")} repeated an earlier answer, but something new came in between: this is work, not a circle.` : "Every call brought something new.";
    return [item(0, el("p", {}, "Nothing went round in circles."), el("p", { class: "hint" }, text))];
  }
  const told = stretches.slice(0, 100).map((stretch) => {
    const worst = callOf(session, stretch.rises[stretch.rises.length - 1]);
    const strongest = callOf(session, [...stretch.rises].reverse().find((i) => session.rule[i] !== "h") ?? worst.i);
    const jumps = stretch.rises.flatMap((i, n) => [n ? ", " : "", el("button", { onclick: () => select(i) }, `${LEVELS[session.level[i]]} at ${i}`)]);
    const after = stretch.to + 1;
    const end = after >= session.n ? "It went on to the end of the recording." : session.turns.includes(after) ? "Then the user wrote." : "Then something new came.";
    const circle = circleOf(session, strongest);
    const band = shown.bands.find((other) => other.to >= stretch.from && other.from <= stretch.to);
    const from = band ? Math.min(band.from, stretch.from) : stretch.from;
    const laps = band && Math.floor((band.to - band.from + 1) / band.period);
    const what = !band ? reason(strongest) : band.period === 1 ? `the same call, ${laps} times` : `a circle of ${band.period} calls, ${laps} times round`;
    let ms = 0;
    for (let i = from; i <= stretch.to; i++) ms += Math.max(0, session.ms[i]);
    return item(worst.level, el("p", {}, el("strong", {}, from === stretch.to ? `Call ${from}` : `Calls ${from} to ${stretch.to}`), `: ${what}`),
      circle ? el("p", {}, ...circle) : null, el("p", {}, ...jumps),
      el("p", { class: "hint" }, (ms >= 1000 ? `${duration(ms)} went by. ` : "") + end));
  });
  if (stretches.length > 100) told.push(item(0, el("p", {}, `and ${number(stretches.length - 100)} more`)));
  return told;
}

/** The tools of one lap, with arrows. */
function circleOf(session, call) {
  if (call.period < 1 || call.period > 12) return null;
  const parts = [];
  for (let i = Math.max(0, call.i - call.period + 1); i <= call.i; i++) parts.push(parts.length ? " → " : "", isolated(callOf(session, i).tool, "mono"));
  return [...parts, " ↻"];
}

function startTimeline() {
  const frame = byId("scroll"), tip = byId("tip");
  frame.addEventListener("scroll", () => requestAnimationFrame(drawTimeline), { passive: true });
  const under = (event) => at(event.clientX - frame.getBoundingClientRect().left + frame.scrollLeft);
  byId("canvas").addEventListener("click", (event) => { select(under(event)); frame.focus({ preventScroll: true }); });
  byId("canvas").addEventListener("mousemove", (event) => {
    tip.textContent = sentence(callOf(shown.session, under(event)));
    tip.hidden = false;
    const box = frame.parentElement.getBoundingClientRect(), place = event.clientX - box.left;
    tip.style.left = Math.max(8, Math.min(place + 14, box.width - tip.offsetWidth - 8)) + "px";
    tip.style.top = Math.max(4, event.clientY - box.top - tip.offsetHeight - 12) + "px";
  });
  byId("canvas").addEventListener("mouseleave", () => { tip.hidden = true; });
  frame.addEventListener("keydown", (event) => {
    const { session, i } = shown;
    const next = session.level.findIndex((level, other) => other > i && level > 0 && level !== session.level[other - 1]);
    let previous = i - 1;
    while (previous > 0 && !(session.level[previous] > 0 && session.level[previous] !== session.level[previous - 1])) previous--;
    const moves = { ArrowLeft: i - 1, ArrowRight: i + 1, ArrowDown: i - 1, ArrowUp: i + 1, Home: 0, End: session.n - 1, PageDown: next < 0 ? session.n - 1 : next, PageUp: previous };
    if (event.key in moves) {
      event.preventDefault();
      select(moves[event.key]);
    } else if (event.key === "+" || event.key === "-") zoomBy(event.key === "+" ? 1.5 : 1 / 1.5);
  });
  byId("zoom-in").addEventListener("click", () => zoomBy(1.5));
  byId("zoom-out").addEventListener("click", () => zoomBy(1 / 1.5));
  byId("zoom-fit").addEventListener("click", () => { fit(true); select(shown.i, true); });
}

function zoomBy(factor) {
  shown.zoom = Math.max(0.004, Math.min(6, shown.zoom * factor));
  stretch();
  select(shown.i, true);
}
