// Joins the parts of the page: shows one view at a time, makes tables that sort and filter, draws pictures.
// Texts of a dump become text nodes, never markup.
"use strict";

const DARK = window.matchMedia("(prefers-color-scheme: dark)");
const LONG = 40; // rows from which on a table scrolls by itself
const NUMERIC = new Set(["count", "bytes", "flops", "seconds", "number", "share", "flops_per_s", "bytes_per_s"]);

const element = (name, attributes = {}, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
};
const prefix = (view) => (view ? `${view}/` : "");
const viewOf = (node) => node.closest("main").dataset.view;
const say = (text) => { document.getElementById("said").textContent = text; };

// ---- data blocks -------------------------------------------------------------------------------------------------------

const blocks = new Map();
for (const block of document.querySelectorAll('script[type="application/json"]')) {
  const { view, table, picture } = block.dataset;
  blocks.set(table === undefined ? `${view}|picture|${picture}` : `${view}|table|${table}`, block);
}

function data(view, kind, name) {
  const block = blocks.get(`${view}|${kind}|${name}`);
  return block ? JSON.parse(block.textContent) : null;
}

// A cell of a column: the position of its value, which is there once.
const position = (column, row) => (column.at ? column.at[row] : row);
const valueAt = (column, row) => column.values[position(column, row)];
const textAt = (column, row) => {
  const at = position(column, row);
  return column.texts ? column.texts[at] : String(column.values[at]);
};
const sortAt = (column, row) => {
  const at = position(column, row);
  const value = column.values[at] === null && column.bounds ? column.bounds[at] : column.values[at];
  if (!NUMERIC.has(column.unit)) return value === null ? "" : value;
  return value === null || Number.isNaN(Number(value)) ? -Infinity : Number(value);
};

// ---- tables ------------------------------------------------------------------------------------------------------------

const tables = new Map();

function csv(table, rows) {
  const quoted = (value) => {
    if (value === null) return "";
    const text = String(value);
    const safe = /^[=+\-@\t\r]/.test(text) && Number.isNaN(Number(text)) ? `'${text}` : text;
    return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  const lines = [table.columns.map((column) => quoted(column.name)).join(",")];
  for (const row of rows) lines.push(table.columns.map((column) => quoted(valueAt(column, row))).join(","));
  return `${lines.join("\n")}\n`;
}

function makeTable(details) {
  const view = viewOf(details);
  const key = `${view}|${details.dataset.table}`;
  if (tables.has(key)) return tables.get(key);
  const table = data(view, "table", details.dataset.table);
  if (!table || !window.DataTable) return null;
  const isNarrow = window.innerWidth < 600;
  const numbers = Array.from({ length: table.rows }, (_, row) => [row]);
  const columns = table.columns.map((column) => ({
    title: column.heading,
    className: NUMERIC.has(column.unit) ? "figure" : "",
    visible: !column.machine && (isNarrow ? column.narrow : column.wide),
    type: NUMERIC.has(column.unit) ? "num" : "string",
    orderSequence: NUMERIC.has(column.unit) ? ["desc", "asc", ""] : ["asc", "desc", ""],
    data: (cell, type) => (type === "sort" || type === "type" ? sortAt(column, cell[0]) : textAt(column, cell[0])),
    render: { display: (text) => text, _: (text) => text },
    createdCell: (cell, text) => { cell.textContent = text; },
  }));
  const holder = element("table", { class: "display compact" });
  details.append(holder);
  details.classList.add("live");
  const isLong = table.rows > LONG;
  const made = new window.DataTable(holder, {
    data: numbers, columns, order: [], autoWidth: false, deferRender: true,
    paging: isLong, scroller: isLong, scrollY: isLong ? "60vh" : "", scrollX: true, scrollCollapse: true,
    layout: {
      topStart: table.rows > 5 ? "search" : null, topEnd: null, bottomStart: isLong ? "info" : null, bottomEnd: null,
    },
  });
  const copy = element("button", { type: "button" }, "Copy as CSV");
  copy.addEventListener("click", () => copyText(csv(table, made.rows({ search: "applied" }).indexes().toArray())));
  holder.closest(".dt-container").prepend(element("p", { class: "tools" }, copy));
  const entry = { table, made };
  tables.set(key, entry);
  return entry;
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

function coloured(value, key = "") {
  if (typeof value === "string") {
    const isColour = /colors?$|colorscale$/.test(key) && value.startsWith("$");
    return isColour ? getComputedStyle(document.documentElement).getPropertyValue(`--c-${value.slice(1)}`).trim() : value;
  }
  if (Array.isArray(value)) return value.map((one) => coloured(one, key));
  if (value && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, coloured(one, name)]));
  }
  return value;
}

const CONFIG = { displaylogo: false, responsive: true, displayModeBar: false, showTips: false };

function draw(figure) {
  const view = viewOf(figure);
  const picture = drawn.get(figure) ?? { ...data(view, "picture", figure.dataset.picture), chosen: 0 };
  const isFirst = !drawn.has(figure);
  drawn.set(figure, picture);
  const area = figure.querySelector(".drawing");
  const { data: traces, layout } = coloured(picture.figures[picture.chosen].figure);
  window.Plotly.react(area, traces, { height: picture.height, ...layout }, CONFIG);
  if (!isFirst) return;
  area.on("plotly_click", (event) => {
    const to = event.points?.[0]?.customdata;
    if (typeof to === "string" && /^[\w-]+:\d+$/.test(to)) location.hash = `#${prefix(view)}table/${to.replace(":", "/")}`;
  });
  if (picture.figures.length > 1) {
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
}

// ---- views, links ------------------------------------------------------------------------------------------------------

function show(view) {
  for (const main of document.querySelectorAll("main")) main.hidden = main.dataset.view !== view;
}

function follow() {
  const parts = decodeURIComponent(location.hash.slice(1)).split("/");
  const views = new Set([...document.querySelectorAll("main")].map((main) => main.dataset.view));
  const view = views.has(parts[0]) && parts[0] ? parts.shift() : "";
  show(view);
  if (!parts.length) { if (location.hash) window.scrollTo(0, 0); return; }
  const isRow = parts[0] === "table" && parts.length === 3;
  const row = isRow ? Number(parts.pop()) : null;
  const target = document.getElementById(prefix(view) + parts.join("/"));
  if (!target) return;
  if (target.matches("details")) target.open = true;
  target.scrollIntoView({ block: "start" });
  if (isRow) showRow(target, row);
}

function showRow(details, row) {
  const entry = makeTable(details);
  if (!entry || !(row >= 0 && row < entry.table.rows)) return;
  entry.made.search("");
  entry.made.row(row).draw(false);
  const place = entry.made.rows({ order: "applied", search: "applied" }).indexes().indexOf(row);
  if (entry.made.settings()[0].oScroller) entry.made.scroller.toPosition(place, false);
  requestAnimationFrame(() => {
    const node = entry.made.row(row).node();
    for (const other of details.querySelectorAll("tr.here")) other.classList.remove("here");
    if (!node) return;
    node.classList.add("here");
    node.scrollIntoView({ block: "center" });
  });
}

// ---- start -------------------------------------------------------------------------------------------------------------

document.documentElement.classList.toggle("dark", DARK.matches);
document.documentElement.classList.add("scripted");
DARK.addEventListener("change", () => {
  document.documentElement.classList.toggle("dark", DARK.matches);
  for (const figure of drawn.keys()) draw(figure);
});

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
  details.addEventListener("toggle", () => { if (details.open) makeTable(details); });
}
window.addEventListener("hashchange", follow);
follow();
document.documentElement.dataset.ready = "true";
