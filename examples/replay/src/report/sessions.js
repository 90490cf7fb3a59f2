// The table of sessions: sorted, filtered, and only the rows in sight are in the page.

const COLUMNS = [
  { name: "Session", key: (s) => s.name.toLowerCase(), kind: "" },
  { name: "Calls, in order", kind: "picture" },
  { name: "Calls", key: (s) => s.n, kind: "r" },
  { name: "Nothing new", key: (s) => s.waste, kind: "r" },
  { name: "Time on it", key: (s) => (s.wasteTime == null ? -1 : s.wasteTime), kind: "r time" },
  { name: "Worst", key: (s) => s.worst * 1e9 + s.waste, kind: "" },
];
const ROW = 34;
const table = { sorted: 5, falling: true, least: 0, find: "", rows: [], at: 0, slots: [] };

function sortAndFilter() {
  const words = table.find.toLowerCase().split(/\s+/).filter(Boolean);
  table.rows = sessions.filter((s) => s.worst >= table.least && words.every((word) => s.text.includes(word)));
  const key = COLUMNS[table.sorted].key, sign = table.falling ? -1 : 1;
  const keyed = table.rows.map((session) => [key(session), session]);
  keyed.sort(([a, x], [b, y]) => (a < b ? -sign : a > b ? sign : x.number - y.number));
  table.rows = keyed.map(([, session]) => session);
  table.at = Math.max(0, table.rows.findIndex((session) => session === shown.session));
  byId("grid-space").style.height = table.rows.length * ROW + "px";
  byId("grid").setAttribute("aria-rowcount", table.rows.length + 1);
  byId("grid-note").textContent = table.rows.length === sessions.length
    ? `${plural(sessions.length, "session")}, the worst first unless sorted otherwise. Arrow keys move, Enter goes to the calls.`
    : `${number(table.rows.length)} of ${plural(sessions.length, "session")}`;
  drawHead();
  drawRows();
}

function drawHead() {
  byId("grid-head").replaceChildren(...COLUMNS.map((column, at) => {
    const sorted = at === table.sorted;
    const cell = el("span", { role: "columnheader", class: column.kind, "aria-sort": sorted ? (table.falling ? "descending" : "ascending") : null });
    if (!column.key) return cell.append(column.name), cell;
    const sort = () => {
      table.falling = sorted ? !table.falling : at !== 0;
      table.sorted = at;
      sortAndFilter();
      byId("grid-head").children[at].firstChild.focus();
    };
    cell.append(el("button", { onclick: sort, "data-sorted": sorted }, column.name + (sorted ? (table.falling ? " ↓" : " ↑") : "")));
    return cell;
  }));
}

/** Rows are made once and used again for whichever sessions are in sight. */
function drawRows(all) {
  const body = byId("grid-body"), slots = table.slots;
  const from = all ? 0 : Math.max(0, Math.floor(body.scrollTop / ROW) - 4);
  const count = Math.min(table.rows.length, all ? 200 : Math.ceil((body.clientHeight || 340) / ROW) + 9);
  const to = Math.min(table.rows.length, from + count);
  while (slots.length > count) slots.pop().row.remove();
  while (slots.length < count) slots.push(newSlot(body));
  for (let at = Math.max(0, to - count); at < to; at++) fillSlot(slots[at % count], table.rows[at], at);
  byId("grid").setAttribute("aria-activedescendant", table.rows.length ? "row-" + table.at : "");
}

function newSlot(body) {
  const cell = (kind) => el("span", { role: "gridcell", class: kind });
  const slot = { picture: el("canvas", { "aria-hidden": "true" }), name: el("bdi"), cells: ["", "picture", "r", "r", "r time", ""].map(cell) };
  slot.cells[0].append(slot.name);
  slot.cells[1].append(slot.picture);
  slot.row = el("div", { class: "row", role: "row", onclick: () => choose(slot.at) }, ...slot.cells);
  body.append(slot.row);
  return slot;
}

function fillSlot(slot, session, at) {
  const selected = session === shown.session ? "true" : "false";
  if (slot.row.getAttribute("aria-selected") !== selected) slot.row.setAttribute("aria-selected", selected);
  if (slot.at !== at) {
    slot.at = at;
    slot.row.id = "row-" + at;
    slot.row.style.top = at * ROW + "px";
    slot.row.setAttribute("aria-rowindex", at + 2);
  }
  if (slot.session === session && slot.scheme === colours.card) return;
  slot.session = session;
  slot.scheme = colours.card;
  slot.name.textContent = slot.row.title = visible(session.name);
  drawStrip(slot.picture, session, 190, 22);
  slot.cells[2].textContent = number(session.n);
  slot.cells[3].textContent = session.waste ? `${number(session.waste)} · ${percent(session.waste, session.n)}` : "–";
  slot.cells[4].textContent = session.waste ? duration(session.wasteTime) : "–";
  slot.cells[5].replaceChildren(tag(session.worst));
}

/** A session at a glance: bars from left to right, high and coloured where it got worse. */
function drawStrip(canvas, session, width, height) {
  const context = sized(canvas, width, height);
  const bars = Math.min(session.n, Math.floor(width / 2));
  const step = Math.min(width / bars, 7);
  for (let bar = 0; bar < bars; bar++) {
    const from = Math.floor((bar * session.n) / bars), to = Math.max(from + 1, Math.floor(((bar + 1) * session.n) / bars));
    let worst = 0, stale = 0;
    for (let i = from; i < to; i++) {
      if (session.level[i] > worst) worst = session.level[i];
      if (session.back[i]) stale = 1;
    }
    const tall = worst ? 5 + worst * 3.4 : stale ? 5 : 3;
    context.fillStyle = worst ? colours[LEVELS[worst]] : stale ? colours.stale : colours.fresh;
    context.fillRect(bar * step, height - tall, Math.max(1, step - (step > 3 ? 1 : 0)), tall);
  }
}

function choose(at) {
  if (!table.rows.length) return;
  table.at = Math.max(0, Math.min(table.rows.length - 1, at));
  const body = byId("grid-body"), top = table.at * ROW;
  if (top < body.scrollTop) body.scrollTop = top;
  else if (top + ROW > body.scrollTop + body.clientHeight) body.scrollTop = top + ROW - body.clientHeight;
  showSession(table.rows[table.at]);
  drawRows();
}

/** Shows a session that something on the page points to, wherever the table has it. */
function openSession(number, i) {
  const at = table.rows.findIndex((session) => session.number === number);
  if (at >= 0) choose(at);
  else showSession(sessions[number]);
  if (i != null) select(i);
  byId("session").scrollIntoView({ block: "start" });
}

function startTable() {
  const body = byId("grid-body");
  let waiting = false;
  body.addEventListener("scroll", () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; drawRows(); });
  }, { passive: true });
  byId("grid").addEventListener("keydown", (event) => {
    if (event.target !== byId("grid") && event.target !== body) return;
    const page = Math.max(1, Math.floor(body.clientHeight / ROW) - 1);
    const moves = { ArrowDown: table.at + 1, ArrowUp: table.at - 1, PageDown: table.at + page, PageUp: table.at - page, Home: 0, End: Infinity };
    if (event.key in moves) {
      event.preventDefault();
      choose(moves[event.key]);
    } else if (event.key === "Enter") {
      event.preventDefault();
      byId("scroll").focus();
    }
  });
  byId("search").addEventListener("input", (event) => {
    table.find = event.target.value;
    body.scrollTop = 0;
    sortAndFilter();
  });
  const buttons = [0, 1, 2, 4].filter((level) => level === 0 || sessions.some((s) => s.worst >= level)).map((level) =>
    el("button", { "aria-pressed": level === 0 ? "true" : "false", onclick: (event) => {
      table.least = level;
      for (const button of buttons) button.setAttribute("aria-pressed", button === event.currentTarget ? "true" : "false");
      body.scrollTop = 0;
      sortAndFilter();
    } }, level === 0 ? "all" : `${LEVELS[level]} or more`));
  byId("filters").replaceChildren(...buttons);
}
