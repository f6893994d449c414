// Shows one view at a time, and follows the address: to a section, a table, a row or an instruction.

const mains = [...document.querySelectorAll("main")];
const views = new Set(mains.map((main) => main.dataset.view));

function show(view) {
  for (const main of mains) main.hidden = main.dataset.view !== view;
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

let before = "";
function follow() {
  const parts = location.hash.slice(1).split("/").map(decoded);
  const view = parts[0] && views.has(parts[0]) ? parts.shift() : "";
  if (parts[0] === "instruction") {
    show(view);
    if (showInstruction(view, parts[1], parts[2])) return;
  }
  document.getElementById("instruction").close();
  before = location.hash;
  show(view);
  if (!parts.length || parts[0] === "top") { if (location.hash) window.scrollTo(0, 0); return; }
  const isTable = parts[0] === "table";
  const target = isTable ? placeOf(view, parts[1]) : inView(view, parts.slice(0, parts[0] === "picture" ? 2 : parts.length).join("/"));
  if (!target) return;
  if (isTable) {
    choose(target, parts[1]);
    target.open = true;
  }
  target.scrollIntoView({ block: "start" });
  if (!isTable || parts.length < 3) return;
  if (parts[2] === "search") makeTable(target)?.made.search(parts.slice(3).join("/")).draw();
  else showRow(target, Number(parts[2]));
}

function showRow(details, row) {
  const entry = makeTable(details);
  if (!entry || !(row >= 0 && row < entry.table.rows)) return;
  const { made } = entry;
  made.search("").search.fixed("filter", null).draw();
  const place = made.rows({ order: "applied", search: "applied" }).indexes().indexOf(row);
  if (entry.table.rows > LONG) made.scroller.toPosition(place, false);
  requestAnimationFrame(() => {
    const node = made.row(row).node();
    for (const other of document.querySelectorAll("tr.here")) other.classList.remove("here");
    if (!node) return;
    node.classList.add("here");
    node.scrollIntoView({ block: "center" });
    say(`Row ${row + 1} of ${entry.table.title}`);
  });
}

// The instruction that a finding is about, where the page knows it.
function linkSubjects() {
  for (const subject of document.querySelectorAll("[data-instruction]")) {
    const view = viewOf(subject), { instruction, line } = subject.dataset;
    const place = line && rowsAt(view, instruction, { line: Number(line) }).length ? { line: Number(line) } : {};
    subject.replaceChildren(instructionLink(view, instruction, place));
  }
}

document.getElementById("instruction").addEventListener("close", () => {
  if (location.hash.includes("instruction/")) history.replaceState(null, "", before || location.pathname + location.search);
});
