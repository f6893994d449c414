// The search of a view: `/` opens it, over instructions, parameters, tables, findings and modules.

const MOST_OF_KIND = 12;
const finder = element("dialog", { id: "finder", "aria-label": "Search" });
const finderField = element("input", { type: "search", placeholder: "Instruction, parameter, table, finding", "aria-label": "Search the page" });
const finderList = element("ul");
finder.append(finderField, finderList);
document.body.append(finder);

const sources = new Map(); // what can be found in each view: [kind, text, address]

function sourcesOf(view) {
  if (!sources.has(view)) {
    const main = document.querySelector(`main[data-view="${view}"]`);
    sources.set(view, [...findings(main), ...tableTitles(main, view), ...modules(view), ...parameters(view), ...instructionNames(view)]);
  }
  return sources.get(view);
}

function findings(main) {
  return [...main.querySelectorAll("details.finding")].map((one) => {
    const words = [".severity", ".message", ".rule"].map((part) => one.querySelector(part).textContent);
    return ["finding", words.join(" "), `#${one.id}`];
  });
}

function tableTitles(main, view) {
  return [...main.querySelectorAll("details.table")].flatMap((details) => {
    const names = [details.id, ...[...details.querySelectorAll("[data-choice][id]")].map((button) => button.id)];
    return names.map((id) => ["table", data(view, "table", id.slice(prefix(view).length + "table/".length))?.title ?? "", `#${id}`]);
  });
}

function modules(view) {
  const table = data(view, "table", "modules") ?? data(view, "table", "pairs");
  if (!table?.links) return [];
  return table.links.flatMap((to, row) => (to ? [["module", textAt(columnOf(table, "name"), row), to]] : []));
}

function parameters(view) {
  const table = data(view, "table", "params");
  if (!table) return [];
  const columns = ["number", "name", "path"].map((name) => columnOf(table, name)).filter(Boolean);
  return Array.from({ length: table.rows }, (_, row) =>
    ["parameter", columns.map((column) => textAt(column, row)).filter(Boolean).join(" "), `#${prefix(view)}table/params/${row}`]);
}

function instructionNames(view) {
  return [...instructions(view).keys()].map((name) => ["instruction", name, `#${prefix(view)}instruction/${encodeURIComponent(name)}`]);
}

// The first of each kind that have all words; those that begin with the text come first.
function foundIn(view, text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return [];
  const begins = ([, name]) => Number(!name.toLowerCase().startsWith(words[0]));
  const kinds = new Map();
  for (const source of sourcesOf(view)) {
    const lower = source[1].toLowerCase();
    if (!words.every((word) => lower.includes(word))) continue;
    if (!kinds.has(source[0])) kinds.set(source[0], []);
    kinds.get(source[0]).push(source);
  }
  return [...kinds.values()].flatMap((all) => all.sort((one, other) => begins(one) - begins(other)).slice(0, MOST_OF_KIND));
}

function showFound() {
  const { view } = document.querySelector("main:not([hidden])").dataset;
  const found = foundIn(view, finderField.value);
  finderList.replaceChildren(...found.map(([kind, text, to]) =>
    element("li", {}, element("a", { href: to }, element("span", { class: "kind" }, kind), " ", text))));
  if (!found.length && finderField.value.trim()) finderList.replaceChildren(element("li", { class: "nothing" }, "nothing found"));
  say(finderField.value.trim() ? `${found.length} found` : "");
}

function openFinder() {
  if (finder.open) return;
  finderField.value = "";
  finderList.replaceChildren();
  finder.showModal();
  finderField.focus();
}

// Arrows lead through what is found, Enter in the field to the first. Escape would only empty the field.
function walkFound(event) {
  const links = [...finderList.querySelectorAll("a")], at = links.indexOf(document.activeElement);
  if (event.key === "ArrowDown") (links[at + 1] ?? links.at(-1))?.focus();
  else if (event.key === "ArrowUp") (links[at - 1] ?? finderField).focus();
  else if (event.key === "Enter" && at < 0) links[0]?.click();
  else if (event.key === "Escape") finder.close();
  else return;
  event.preventDefault();
}

finderField.addEventListener("input", showFound);
finder.addEventListener("keydown", walkFound);
finder.addEventListener("click", (event) => { if (event.target === finder || event.target.closest("a")) finder.close(); });
document.addEventListener("keydown", (event) => {
  // the field of the search keeps the focus for a moment after it closed
  const isTyping = event.target.closest("input, textarea, select") && !finder.contains(event.target);
  if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  event.preventDefault();
  openFinder();
});
