// Shows one view at a time, and follows the address: to a section, a table, a row or an instruction.

const waiting = new Map(); // the inert text of each view that is not made yet
for (const block of document.querySelectorAll("script[data-packed]")) waiting.set(block.dataset.packed, block);
const views = new Set([...waiting.keys(), ...[...document.querySelectorAll("main")].map((main) => main.dataset.view)]);
const arriving = new Map();

// Make a view that waits, once.
function arrived(view) {
  if (!arriving.has(view)) arriving.set(view, waiting.has(view) ? makeView(view) : Promise.resolve());
  return arriving.get(view);
}

// The text of a view is that of the page: whatever comes from a dump is escaped in it.
async function makeView(view) {
  const block = waiting.get(view), place = element("div");
  block.replaceWith(place);
  place.insertAdjacentHTML("beforebegin", await unpacked(block));
  place.remove();
  const main = document.querySelector(`main[data-view="${view}"]`);
  main.hidden = true;
  noteBlocks();
  watch(main);
  linkSubjects(main);
}

function show(view) {
  for (const main of document.querySelectorAll("main")) main.hidden = main.dataset.view !== view;
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

let before = "";
let turn = 0;

async function follow() {
  const now = (turn += 1);
  const parts = location.hash.slice(1).split("/").map(decoded);
  const view = parts[0] && views.has(parts[0]) ? parts.shift() : "";
  await arrived(view);
  if (now !== turn) return; // the reader has gone on
  show(view);
  if (parts[0] === "instruction" && showInstruction(view, parts[1], parts[2])) return;
  document.getElementById("instruction").close();
  before = location.hash;
  if (!parts.length || parts[0] === "top") { if (location.hash) window.scrollTo(0, 0); return; }
  const isTable = parts[0] === "table";
  const target = isTable ? placeOf(view, parts[1]) : inView(view, parts.slice(0, parts[0] === "picture" ? 2 : parts.length).join("/"));
  if (!target) return;
  if (isTable) choose(target, parts[1]);
  for (let around = target.closest("details"); around; around = around.parentElement.closest("details")) around.open = true;
  target.scrollIntoView({ block: "start" });
  if (!isTable || parts.length < 3) return;
  const entry = await makeTable(target);
  if (!entry) return;
  if (Object.hasOwn(STATES, parts[2])) takeState(entry, parts.slice(2));
  else showRow(entry, Number(parts[2]));
}

function showRow(entry, row) {
  const { table, made } = entry;
  if (!(row >= 0 && row < table.rows)) return;
  setState(entry, { search: "", filter: null });
  const place = made.rows({ order: "applied", search: "applied" }).indexes().indexOf(row);
  if (table.rows > LONG) made.scroller.toPosition(place, false);
  requestAnimationFrame(() => {
    const node = made.row(row).node();
    for (const other of document.querySelectorAll("tr.here")) other.classList.remove("here");
    if (!node) return;
    node.classList.add("here");
    node.scrollIntoView({ block: "center" });
    say(`Row ${row + 1} of ${table.title}`);
  });
}

// The instruction that a finding is about, where the page knows it.
function linkSubjects(main) {
  for (const subject of main.querySelectorAll("[data-instruction]")) {
    const view = viewOf(subject), { instruction, line } = subject.dataset;
    const place = line && rowsAt(view, instruction, { line: Number(line) }).length ? { line: Number(line) } : {};
    subject.replaceChildren(instructionLink(view, instruction, place));
  }
}

document.getElementById("instruction").addEventListener("close", () => {
  if (location.hash.includes("instruction/")) history.replaceState(null, "", before || location.pathname + location.search);
});
