// Joins the parts of the page: shows one view at a time, makes tables that sort and filter, draws pictures, leads from names to
// instructions. Texts of a dump become text nodes, or are escaped.
"use strict";

const DARK = window.matchMedia("(prefers-color-scheme: dark)");
const NARROW = 600; // pixels of a telephone
const WIDE = 40; // characters that a cell shows of a text
const PAPER = 690; // pixels between the margins of A4
const LEGEND = 60;
const LONG = 30; // rows from which on a table scrolls by itself
const NUMERIC = new Set(["count", "bytes", "flops", "seconds", "number", "share", "flops_per_s", "bytes_per_s"]);
const FACTORS = JSON.parse(document.getElementById("quantities").textContent);
const LONGEST_QUANTITY = 64; // characters

const element = (name, attributes = {}, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
};
const escaped = (text) => String(text).replace(/[&<>"']/g, (one) => `&#${one.charCodeAt(0)};`);
const prefix = (view) => (view ? `${view}/` : "");
const viewOf = (node) => node.closest("[data-view]").dataset.view;
const say = (text) => { document.getElementById("said").textContent = text; };
const inView = (view, name) => document.getElementById(prefix(view) + name);

// ---- data blocks -------------------------------------------------------------------------------------------------------

const blocks = new Map();
for (const block of document.querySelectorAll("script[data-view]")) {
  const { view, table, picture } = block.dataset;
  blocks.set(table === undefined ? `${view}|picture|${picture}` : `${view}|table|${table}`, block);
}

const read = new Map();
function data(view, kind, name) {
  const key = `${view}|${kind}|${name}`;
  if (!read.has(key)) read.set(key, blocks.has(key) ? JSON.parse(blocks.get(key).textContent) : null);
  return read.get(key);
}

// A cell of a column: the position of its value, which is there once.
const position = (column, row) => (column.at ? column.at[row] : row);
const valueAt = (column, row) => column.values[position(column, row)];
const textAt = (column, row) => {
  const at = position(column, row);
  return column.texts ? column.texts[at] : String(column.values[at] ?? "");
};
const sortAt = (column, row) => {
  const at = position(column, row);
  const value = column.values[at] === null && column.bounds ? column.bounds[at] : column.values[at];
  if (!NUMERIC.has(column.unit)) return value === null ? "" : value;
  return value === null || Number.isNaN(Number(value)) ? -Infinity : Number(value);
};
const columnOf = (table, name) => table.columns.find((column) => column.name === name);

// ---- instructions ------------------------------------------------------------------------------------------------------

const NAMES = new Set(["name", "longest", "operands", "used_by"]);
const PLACE = ["computation", "line"];
const known = new Map();

// The rows of the instructions of a view, by name: two computations can each have one of the same name.
function instructions(view) {
  if (!known.has(view)) {
    const table = data(view, "table", "instructions");
    const names = table ? columnOf(table, "name") : null;
    const rows = new Map();
    for (let row = 0; table && row < table.rows; row += 1) {
      const name = valueAt(names, row);
      if (rows.has(name)) rows.get(name).push(row);
      else rows.set(name, [row]);
    }
    known.set(view, rows);
  }
  return known.get(view);
}

// The place that a row of a table says it is at, as far as the table has it.
function placeAt(table, row) {
  const columns = PLACE.map((name) => columnOf(table, name)).filter(Boolean);
  return Object.fromEntries(columns.map((column) => [column.name, valueAt(column, row)]));
}

const agree = (one, other) => PLACE.every((name) => one[name] == null || other[name] == null || one[name] === other[name]);

// The rows of instructions of a name at a place.
function rowsAt(view, name, place = {}) {
  const rows = instructions(view).get(name) ?? [];
  const table = data(view, "table", "instructions");
  return rows.filter((row) => agree(place, placeAt(table, row)));
}

// The address of one instruction, of all of a name where the place does not say which, or "". A row tells equal names apart.
function toInstruction(view, name, place) {
  const rows = rowsAt(view, name, place);
  if (!rows.length) return "";
  const isOne = rows.length === 1 && instructions(view).get(name).length > 1;
  return `#${prefix(view)}instruction/${encodeURIComponent(name)}${isOne ? `/${rows[0]}` : ""}`;
}

function instructionLink(view, name, place) {
  const to = toInstruction(view, name, place);
  return to ? element("a", { href: to }, name) : name;
}

function linkedNames(view, text, place) {
  return text.split(", ").flatMap((name, at) => [...(at ? [", "] : []), instructionLink(view, name, place)]);
}

// The first row of each table that is about an instruction. Of two of one name only tables that have places tell which is meant.
function rowsAbout(view, name, place) {
  const isOne = instructions(view).get(name).length === 1;
  const found = [];
  for (const key of blocks.keys()) {
    const [of, kind, table] = key.split("|");
    if (of !== view || kind !== "table" || table === "instructions" || !inView(view, `table/${table}`)) continue;
    const held = data(view, "table", table);
    const column = columnOf(held, "name");
    if (!column?.values.includes(name) || !(isOne || PLACE.some((one) => columnOf(held, one)))) continue;
    for (let row = 0; row < held.rows; row += 1) {
      if (valueAt(column, row) !== name || !agree(place, placeAt(held, row))) continue;
      found.push([held, row]);
      break;
    }
  }
  return found;
}

// An instruction by its name, and by its row where others have this name; without the row, links to each of them.
function showInstruction(view, name, number) {
  const rows = instructions(view).get(name);
  if (!rows) return false;
  const row = rows.length === 1 ? rows[0] : rows.find((one) => String(one) === number);
  const list = element("dl");
  const add = (label, ...content) => list.append(element("dt", {}, label), element("dd", {}, ...content));
  if (row === undefined) addEach(view, name, rows, add);
  else addInstruction(view, name, row, add);
  const dialog = document.getElementById("instruction");
  const close = element("button", { type: "button" }, "Close");
  close.addEventListener("click", () => dialog.close());
  dialog.replaceChildren(element("header", {}, element("h2", { id: "instruction-name" }, name), close), list);
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
  return true;
}

function addEach(view, name, rows, add) {
  const table = data(view, "table", "instructions");
  for (const row of rows) {
    const place = placeAt(table, row);
    add(`line ${place.line}`, element("a", { href: toInstruction(view, name, place) }, `in ${place.computation}`));
  }
}

function addInstruction(view, name, row, add) {
  const table = data(view, "table", "instructions");
  const place = placeAt(table, row);
  for (const column of table.columns) {
    const text = textAt(column, row);
    if (column.name === "name" || !text) continue;
    add(column.heading, ...(NAMES.has(column.name) ? linkedNames(view, text, { computation: place.computation }) : [text]));
    if (column.name === "source") addStack(view, valueAt(column, row), add);
  }
  const rows = rowsAbout(view, name, place);
  for (const [held, at] of rows.filter(([held]) => held.name === "kernels")) {
    for (const column of held.columns) {
      const text = textAt(column, at);
      if (NUMERIC.has(column.unit) && !column.machine && text && column.name !== "line") add(column.heading, text);
    }
  }
  if (rows.length) {
    const links = rows.map(([held, at]) => element("a", { href: `#${prefix(view)}table/${held.name}/${at}` }, held.title));
    add("rows", ...links.flatMap((link) => [link, element("br")]));
  }
}

// The frames from which a line was called.
function addStack(view, source, add) {
  const stacks = data(view, "table", "call_stacks");
  if (!stacks) return;
  const [sources, frames, functions] = ["source", "frame", "function"].map((name) => columnOf(stacks, name));
  const lines = [];
  for (let row = 0; row < stacks.rows; row += 1) {
    if (valueAt(sources, row) === source) lines.push(element("li", {}, `${textAt(frames, row)} ${textAt(functions, row)}`));
  }
  if (lines.length) add("called from", element("ol", {}, ...lines));
}

// ---- tables ------------------------------------------------------------------------------------------------------------

const tables = new Map();

function csv(table, rows) {
  const quoted = (text) => (/[",]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const fieldAt = (column, row) => column.csv?.[position(column, row)] ?? String(valueAt(column, row) ?? "");
  const lines = [table.columns.map((column) => quoted(column.name)).join(",")];
  for (const row of rows) lines.push(table.columns.map((column) => quoted(fieldAt(column, row))).join(","));
  return `${lines.join("\n")}\n`;
}

// Equal instructions in one row lead to each of them: to the table of single ones, searched for what they have in common.
function toSingles(view, table, row) {
  const singles = { kernel_groups: "kernels", fusion_groups: "fusions", live_at_peak_groups: "live_at_peak" }[table.name];
  const name = columnOf(table, "name");
  if (!singles || !name || !inView(view, `table/${singles}`)) return "";
  const stem = textAt(name, row).split(".*")[0].split(" ×")[0];
  const others = ["shape", "source"].map((one) => columnOf(table, one)).filter(Boolean).map((one) => textAt(one, row));
  const words = [stem, ...others].filter((word) => word && !/ more$|^\(/.test(word)).map((word) => `"${word}"`);
  return `#${prefix(view)}table/${singles}/search/${encodeURIComponent(words.join(" "))}`;
}

function display(view, table, column, row) {
  const text = textAt(column, row);
  const isFirst = column === table.columns[0];
  const to = isFirst && table.links?.[row];
  if (to) return `<a href="${escaped(to)}">${escaped(text)}</a>`;
  if (!NAMES.has(column.name) || !text) return escaped(text);
  const named = toInstruction(view, text, column.name === "name" ? placeAt(table, row) : {});
  if (named) return `<a href="${escaped(named)}">${escaped(text)}</a>`;
  const singles = isFirst && toSingles(view, table, row);
  return singles ? `<a href="${escaped(singles)}">${escaped(text)}</a>` : escaped(text);
}

// The number that a text such as "180 MiB" states in a unit, or null. A number and a unit multiply as integers, exactly.
function quantity(text, unit) {
  const parts = text.match(/^([+-]?)(\d+(?:_\d+)*|(?=\.\d))(?:\.(\d*))?(?:[eE]([+-]?\d{1,3}))?[ \t]*([A-Za-z%\u00b5\u03bc/]*)$/);
  if (!parts || text.length > LONGEST_QUANTITY) return null;
  const [, sign, whole, decimals = "", exponent = "0", name] = parts;
  if (name && !Object.hasOwn(FACTORS[unit] ?? {}, name)) return null;
  const [factor, power] = name ? FACTORS[unit][name] : [1, 0];
  const digits = BigInt(whole.replaceAll("_", "") + decimals) * BigInt(factor);
  return Number(`${sign}${digits}e${Number(exponent) + power - decimals.length}`);
}

const numberIn = (values, at) => (values[at] === null ? null : Number(String(values[at]).replace("inf", "Infinity")));
const ORDER = {
  "<": (value, wanted) => value < wanted,
  "<=": (value, wanted) => value <= wanted,
  ">": (value, wanted) => value > wanted,
  ">=": (value, wanted) => value >= wanted,
};

// ">= 1 MiB", "= all-gather", "text": the test of a cell by its row, or null where the column has no such values. With an
// operator it is that of the option --filter: a lower bound counts for > and >= alone. Without one the cell contains the text.
function cellTest(column, text) {
  const [, operator, rest] = text.trim().match(/^(<=|>=|==|!=|<|>|=|~)?\s*(.*)$/s);
  if (!rest) return null;
  const [, inTwo, inOne] = rest.match(/^(?:"([^"]*)"|'([^']*)')$/) ?? [];
  const plain = inTwo ?? inOne ?? rest;
  if (!operator) return (row) => textAt(column, row).toLowerCase().includes(plain.toLowerCase());
  if (ORDER[operator]) return orderTest(column, operator, plain);
  if (operator === "~") return column.unit === "text" ? containmentTest(column, plain) : null;
  const equal = equalityTest(column, plain, plain !== rest);
  return equal && operator === "!=" ? (row) => !equal(row) : equal;
}

function orderTest(column, operator, text) {
  const wanted = NUMERIC.has(column.unit) ? quantity(text, column.unit) : null;
  if (wanted === null) return null;
  const bounds = operator.startsWith(">") ? column.bounds : null;
  return (row) => {
    const at = position(column, row);
    const value = numberIn(column.values, at) ?? (bounds ? numberIn(bounds, at) : null);
    return value !== null && ORDER[operator](value, wanted);
  };
}

function equalityTest(column, text, isQuoted) {
  if (text === "?" && !isQuoted) return (row) => valueAt(column, row) === null;
  if (column.unit === "bool") {
    const wanted = ["yes", "true"].includes(text);
    return wanted || ["no", "false"].includes(text) ? (row) => valueAt(column, row) === wanted : null;
  }
  if (column.unit === "text") {
    return (row) => (valueAt(column, row) === null ? text + textAt(column, row) === "" : [valueAt(column, row), textAt(column, row)].includes(text));
  }
  const wanted = quantity(text, column.unit);
  return wanted === null ? null : (row) => numberIn(column.values, position(column, row)) === wanted;
}

// The text, or a match of it as a regular expression, in the value or in what is shown of it.
function containmentTest(column, text) {
  let found = (cell) => cell.includes(text);
  try {
    const pattern = new RegExp(text);
    found = (cell) => cell.includes(text) || pattern.test(cell);
  } catch { /* "transpose(jvp" is text and no expression */ }
  return (row) => valueAt(column, row) !== null && (found(String(valueAt(column, row))) || found(textAt(column, row)));
}

function makeTable(details) {
  const view = viewOf(details);
  const key = `${view}|${details.dataset.table}`;
  if (tables.has(key)) return tables.get(key);
  const table = data(view, "table", details.dataset.table);
  if (!table || !window.DataTable) return null;
  const isNarrow = window.innerWidth < NARROW;
  const columns = table.columns.map((column) => ({
    title: escaped(column.heading),
    className: NUMERIC.has(column.unit) ? "figure" : "words",
    createdCell: (cell, text) => { if (text.length > WIDE && !NUMERIC.has(column.unit)) cell.title = cell.textContent; },
    visible: !column.machine && (column.texts ?? column.values).some((text) => text !== null && text !== "") && (isNarrow ? column.narrow : column.wide),
    type: NUMERIC.has(column.unit) ? "num" : "string",
    orderSequence: NUMERIC.has(column.unit) ? ["desc", "asc", ""] : ["asc", "desc", ""],
    data: ([row], type) => {
      if (type === "sort" || type === "type") return sortAt(column, row);
      return type === "display" ? display(view, table, column, row) : textAt(column, row);
    },
  }));
  const holder = element("table", { class: "display compact nowrap", "aria-label": table.title });
  details.append(holder);
  details.classList.add("live");
  const isLong = table.rows > LONG;
  details.classList.toggle("long", isLong);
  const shown = new Set(table.columns.flatMap((column, at) => (column.machine ? [] : [at])));
  const isSearched = table.rows > 5;
  const filter = isSearched ? filterLine(table) : null;
  const made = new window.DataTable(holder, {
    data: Array.from({ length: table.rows }, (_, row) => [row]), columns,
    order: [], autoWidth: false, deferRender: true, ordering: true,
    paging: isLong, scroller: isLong ? { displayBuffer: 6, loadingIndicator: false } : false,
    scrollY: isLong ? "26rem" : "", scrollX: true, scrollCollapse: true,
    buttons: [
      { extend: "colvis", text: "Columns", columns: [...shown], fade: 0, background: false },
      { text: "Copy as CSV", action: () => copyText(csv(table, made.rows({ search: "applied" }).indexes().toArray())) },
    ],
    layout: {
      topStart: isSearched ? ["search", () => filter.line] : null, topEnd: "buttons", bottomStart: isLong ? "info" : null, bottomEnd: null,
    },
    language: { search: "Search", info: "_TOTAL_ rows", infoFiltered: "of _MAX_", infoEmpty: "no rows", zeroRecords: "No row matches." },
  });
  const entry = { view, table, made };
  tables.set(key, entry);
  filter?.onChange((test) => made.search.fixed("filter", test ? (_text, _data, row) => test(row) : null).draw());
  return entry;
}

// A line that takes "size >= 1 MiB" or "kind = all-gather" for one column.
function filterLine(table) {
  const choice = element("select", { "aria-label": "Column to filter" });
  table.columns.forEach((column, at) => {
    if (!column.machine) choice.append(element("option", { value: String(at) }, column.heading));
  });
  const field = element("input", { type: "search", placeholder: ">= 1 MiB, = fusion, ~ dot, text", "aria-label": "Filter" });
  const line = element("div", { class: "filter" }, element("label", {}, "Filter "), choice, field);
  const onChange = (use) => {
    const apply = () => {
      const test = cellTest(table.columns[Number(choice.value)], field.value);
      field.setAttribute("aria-invalid", String(Boolean(field.value.trim()) && !test));
      use(test);
    };
    field.addEventListener("input", apply);
    choice.addEventListener("change", apply);
  };
  return { line, onChange };
}

async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = element("textarea", { class: "unseen" });
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  say("Copied.");
}

// ---- pictures ----------------------------------------------------------------------------------------------------------

const drawn = new Map();
const CONFIG = { displaylogo: false, responsive: true, displayModeBar: false, showTips: false };

function coloured(value, key = "") {
  if (typeof value === "string") {
    const isColour = /(?:colors?|colorscale)$/.test(key) && value.startsWith("$");
    return isColour ? getComputedStyle(document.documentElement).getPropertyValue(`--c-${value.slice(1)}`).trim() : value;
  }
  if (Array.isArray(value)) return value.map((one) => coloured(one, key));
  if (value && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, coloured(one, name)]));
  }
  return value;
}

function draw(figure) {
  const view = viewOf(figure);
  const isFirst = !drawn.has(figure);
  const picture = drawn.get(figure) ?? { ...data(view, "picture", figure.dataset.picture), chosen: 0 };
  drawn.set(figure, picture);
  const area = figure.querySelector(".drawing");
  const chosen = picture.figures[picture.chosen];
  area.setAttribute("aria-label", chosen.text);
  const { data: traces, layout } = coloured(chosen.figure);
  const width = document.documentElement.classList.contains("paper") ? { width: PAPER } : {};
  const legend = layout.showlegend && area.clientWidth < NARROW ? LEGEND : 0; // it takes several lines there
  window.Plotly.react(area, traces, { ...layout, ...width, height: (layout.height ?? picture.height) + legend }, CONFIG);
  if (!isFirst) return;
  area.on("plotly_click", (event) => {
    const to = event.points?.[0]?.customdata;
    if (typeof to === "string" && /^[\w-]+:\d+$/.test(to)) location.hash = `#${prefix(view)}table/${to.replace(":", "/")}`;
  });
  if (traces.some((trace) => trace.type === "icicle" || trace.type === "treemap")) addKeys(area);
  if (picture.figures.length > 1) addMeasures(figure, picture);
}

// Tab leads to the root of a tree, arrows to its other nodes, Enter into one, and Enter on the bar above out again.
function addKeys(area) {
  const nodes = () => [...area.querySelectorAll("g.slice, g.pathbar")];
  const name = () => nodes().forEach((node, at) => {
    node.setAttribute("tabindex", at ? "-1" : "0");
    node.setAttribute("role", "button");
    node.setAttribute("aria-label", node.textContent);
  });
  name();
  for (const event of ["plotly_afterplot", "plotly_animated"]) area.on(event, name);
  area.addEventListener("focusin", (event) => event.target.dispatchEvent(new MouseEvent("mouseover")));
  area.addEventListener("focusout", (event) => event.target.dispatchEvent(new MouseEvent("mouseout")));
  area.addEventListener("keydown", (event) => {
    const all = nodes();
    const at = all.indexOf(event.target);
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (at >= 0 && step) all[(at + step + all.length) % all.length].focus();
    else if (at >= 0 && event.key === "Enter") all[at].dispatchEvent(new MouseEvent("click"));
    else return;
    event.preventDefault();
  });
}

function addMeasures(figure, picture) {
  const buttons = picture.figures.map((one, at) => {
    const button = element("button", { type: "button", "aria-pressed": String(at === 0) }, one.label);
    button.addEventListener("click", () => {
      picture.chosen = at;
      buttons.forEach((other, number) => other.setAttribute("aria-pressed", String(number === at)));
      draw(figure);
    });
    return button;
  });
  figure.querySelector(".measures").append(...buttons);
}

// ---- views, links ------------------------------------------------------------------------------------------------------

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
  const target = inView(view, parts.slice(0, parts[0] === "table" || parts[0] === "picture" ? 2 : parts.length).join("/"));
  if (!target) return;
  if (target.matches("details")) target.open = true;
  target.scrollIntoView({ block: "start" });
  if (parts[0] !== "table" || parts.length < 3) return;
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

// ---- start -------------------------------------------------------------------------------------------------------------

// The text of a library, which the page holds compressed. The policy of the page knows it by its hash.
async function unpacked(name) {
  const block = document.querySelector(`script[data-library="${name}"]`);
  const packed = atob(block.textContent);
  block.remove();
  const bytes = new Uint8Array(packed.length);
  for (let at = 0; at < packed.length; at += 1) bytes[at] = packed.charCodeAt(at);
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}

function run(text) {
  const script = element("script");
  script.textContent = text;
  document.head.append(script);
  script.remove();
}

function takeScheme() {
  document.documentElement.classList.toggle("dark", DARK.matches);
  for (const figure of drawn.keys()) draw(figure);
}

function watch() {
  const seen = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      seen.unobserve(target);
      if (target.matches("figure")) draw(target);
      else makeTable(target);
    }
  }, { rootMargin: "300px" });
  for (const figure of document.querySelectorAll("figure[data-picture]")) seen.observe(figure);
  for (const details of document.querySelectorAll("details.table")) {
    if (details.open) seen.observe(details);
    details.addEventListener("toggle", () => { if (details.open && !opened.has(details)) makeTable(details); });
  }
}

// Without what the libraries need the page has its texts, and the first rows of its tables.
async function start() {
  takeScheme();
  show(views.has("") ? "" : mains[0]?.dataset.view);
  try {
    const texts = await Promise.all(["tables", "pictures"].map(unpacked));
    texts.forEach(run);
  } catch {
    for (const area of document.querySelectorAll(".drawing")) area.textContent = area.getAttribute("aria-label");
    document.documentElement.dataset.ready = "plain";
    return;
  }
  watch();
  DARK.addEventListener("change", takeScheme);
  window.addEventListener("hashchange", follow);
  follow();
  (window.requestIdleCallback ?? setTimeout)(linkSubjects);
  document.documentElement.dataset.ready = "true";
}

for (const button of document.querySelectorAll("button[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", () => copyText(document.getElementById(button.dataset.copy).dataset.text));
}
document.getElementById("instruction").addEventListener("close", () => {
  if (location.hash.includes("instruction/")) history.replaceState(null, "", before || location.pathname + location.search);
});

// On paper there is every picture of the view, in the colours of a light page, and the first table of each section.
const opened = new Set();
window.addEventListener("beforeprint", () => {
  const view = mains.find((main) => !main.hidden);
  document.documentElement.classList.add("paper");
  for (const details of view?.querySelectorAll("section > details.table:first-of-type:not([open])") ?? []) {
    opened.add(details);
    details.open = true;
  }
  for (const figure of view?.querySelectorAll("figure[data-picture]") ?? []) if (window.Plotly) draw(figure);
});
window.addEventListener("afterprint", () => {
  document.documentElement.classList.remove("paper");
  for (const details of opened) details.open = false;
  opened.clear();
  for (const figure of drawn.keys()) draw(figure);
});
start();
