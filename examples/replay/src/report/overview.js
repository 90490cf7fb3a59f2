// The head of the page: what it all came to.

function drawOverview() {
  const many = sessions.length !== 1;
  byId("mode").textContent = `· rule: ${DATA.mode}`;
  const headline = total.warned === 0
    ? (many ? "No agent went round in circles" : "This agent did not go round in circles")
    : (many ? `${number(total.warned)} of ${plural(sessions.length, "session")} went round in circles` : "This agent went round in circles");
  byId("headline").textContent = headline;
  document.title = headline;
  byId("lead").textContent =
    "An agent works by calling tools: read a file, run a test. It goes round in circles when it makes the same calls again and gets the same answers. " +
    "This page shows every recorded call, where nothing new came back, and at which call a guard would have stepped in.";
  const box = (name, value, more) => el("div", {}, el("dt", {}, name), el("dd", {}, value, more ? el("small", {}, more) : null));
  byId("numbers").replaceChildren(
    box("Sessions", number(sessions.length), `${plural(DATA.files.length, "file")} read`),
    box("Tool calls", number(total.calls), DATA.skipped ? `${plural(DATA.skipped, "line")} could not be read` : "all lines could be read"),
    box("Brought nothing new", percent(total.waste, total.calls), plural(total.waste, "call")),
    box("Time spent on those", total.wasteTime == null ? "not recorded" : duration(total.wasteTime), total.time == null ? null : `of ${duration(total.time)}`),
    box("Would have been refused", number(total.levels[4] + total.levels[5]), `${number(total.levels[2] + total.levels[3])} more warned`));
  drawVerdicts();
  drawTools();
  drawPrints();
  byId("footer").textContent = `Made by bizar-replay ${DATA.version}. ` +
    (DATA.args ? "Arguments of calls are in this file: they may hold secrets." : "Arguments and answers of calls are not in this file.");
}

function meter(name, parts, whole, count) {
  const track = el("span", { class: "track", "aria-hidden": "true" });
  for (const [value, colour] of parts) {
    if (value > 0) track.append(el("i", { style: `width:${(100 * value) / whole}%;min-width:1px;background:var(--${colour})` }));
  }
  return el("div", { class: "meter" }, el("span", { class: "name" }, name), track, el("span", { class: "n" }, count));
}

function drawVerdicts() {
  const most = Math.max(1, ...total.levels);
  // Allowed calls are so many that only a logarithm shows the others beside them.
  const scale = (count) => Math.log1p(count) / Math.log1p(most);
  byId("verdicts").replaceChildren(...LEVELS.map((name, level) => {
    const row = meter(tag(level), [[scale(total.levels[level]), levelColour(level)]], 1, number(total.levels[level]));
    row.title = MEANING[level];
    return row;
  }), el("p", { class: "hint" }, "Bars grow with the logarithm of the count."));
}

function drawTools() {
  const calls = new Array(DATA.tools.length).fill(0), waste = new Array(DATA.tools.length).fill(0);
  for (const session of sessions) {
    for (let i = 0; i < session.n; i++) {
      const tool = session.tools[session.call[i]];
      calls[tool]++;
      if (isWaste(session, i)) waste[tool]++;
    }
  }
  const order = calls.map((_, tool) => tool).sort((a, b) => calls[b] - calls[a]);
  const most = calls[order[0]] || 1;
  const rows = order.slice(0, 7).map((tool) => {
    const row = meter(isolated(DATA.tools[tool], "mono"), [[waste[tool], "warn"], [calls[tool] - waste[tool], "fresh"]], most, number(calls[tool]));
    row.title = `${visible(DATA.tools[tool])}: ${plural(calls[tool], "call")}, ${percent(waste[tool], calls[tool])} brought nothing new`;
    return row;
  });
  byId("tools").replaceChildren(...rows, el("p", { class: "hint" },
    el("span", { class: "tag" }, swatch("warn"), "nothing new"), " ", el("span", { class: "tag" }, swatch("fresh"), "new"),
    order.length > 7 ? ` · ${number(order.length - 7)} more tools` : ""));
}

function drawPrints() {
  const prints = new Map();
  for (const session of sessions) {
    for (let i = 0; i < session.n; i++) {
      if (!isWaste(session, i)) continue;
      const print = session.prints[session.call[i]];
      const entry = prints.get(print);
      if (entry) entry.count++;
      else prints.set(print, { print, count: 1, session, i });
    }
  }
  const top = [...prints.values()].sort((a, b) => b.count - a.count).slice(0, 7);
  if (top.length === 0) {
    byId("prints").replaceChildren(el("p", {}, "Nothing was repeated with the same answer."));
    return;
  }
  byId("prints").replaceChildren(...top.map((entry) => {
    const call = callOf(entry.session, entry.i), what = call.args == null ? call.print : call.args.slice(0, 200);
    const name = el("button", { class: "name mono", onclick: () => openSession(entry.session.number, entry.i), title: `${visible(call.tool)} ${visible(what)}: show where` },
      isolated(call.tool), " ", isolated(what));
    return meter(name, [[entry.count, "warn"]], top[0].count, "×" + number(entry.count));
  }), el("p", { class: "hint" }, "Times a call repeated an answer it had had in the same turn. Click one to see it."));
}
