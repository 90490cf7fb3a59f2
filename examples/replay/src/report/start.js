// Puts it all on the page.

function redraw() {
  readColours();
  drawRows();
  drawTimeline();
}

readColours();
drawOverview();
drawLegend();
startTable();
startTimeline();
sortAndFilter();
if (table.rows.length) choose(0);
else byId("session").hidden = true;
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
addEventListener("resize", () => requestAnimationFrame(redraw));
addEventListener("beforeprint", () => {
  byId("grid-space").style.height = Math.min(200, table.rows.length) * ROW + "px";
  drawRows(true);
  if (!shown.session) return;
  shown.paper = 560;
  fit(true);
  select(shown.i, true);
});
addEventListener("afterprint", () => {
  shown.paper = 0;
  sortAndFilter();
  if (!shown.session) return;
  fit(false);
  select(shown.i, true);
});
