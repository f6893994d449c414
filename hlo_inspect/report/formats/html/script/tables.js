// Tables that sort, filter, search and copy: DataTables, made when they come into view.

const wide = () => (window.innerWidth < NARROW ? 22 : 40); // characters that a cell shows of a name
const LETTER = 9.5; // pixels of a letter of a table, with its part of what is between columns
const SENTENCE = 3; // blanks from which on a text is a sentence, which takes several lines
const LONG = 30; // rows from which on a table scrolls by itself

const tables = new Map();
const MATES = { old: "new", new: "old", was: "now", now: "was" }; // columns with a value before and after

// The HTML of a text beside its mate of the other side, with the words that differ marked; "" if there is no such text.
function markedChange(table, column, row) {
  const mate = MATES[column.name] && columnOf(table, MATES[column.name]);
  if (!mate || ![column, mate].every((one) => typeof valueAt(one, row) === "string" && valueAt(one, row))) return "";
  const [own, other] = [column, mate].map((one) => textAt(one, row).match(/[\p{L}\p{N}_.]+|[^\p{L}\p{N}_.]/gu) ?? []);
  let begin = 0, end = 0;
  while (begin < Math.min(own.length, other.length) && own[begin] === other[begin]) begin += 1;
  while (end < Math.min(own.length, other.length) - begin && own.at(-1 - end) === other.at(-1 - end)) end += 1;
  const differs = (at) => (own.length === other.length ? own[at] !== other[at] : at >= begin && at < own.length - end);
  return own.map((word, at) => (differs(at) ? `<mark>${escaped(word)}</mark>` : escaped(word))).join("").replaceAll("</mark><mark>", "");
}

function csv(table, rows) {
  const quoted = (text) => (/[",]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const fieldAt = (column, row) => column.csv?.[position(column, row)] ?? String(valueAt(column, row) ?? "");
  const lines = [table.columns.map((column) => quoted(column.name)).join(",")];
  for (const row of rows) lines.push(table.columns.map((column) => quoted(fieldAt(column, row))).join(","));
  return `${lines.join("\n")}\n`;
}

function copyRows(table, rows) {
  const order = rows.length === table.rows ? "" : ` of ${table.rows.toLocaleString("en")}`;
  copyText(csv(table, rows), `${rows.length.toLocaleString("en")}${order} ${table.rows === 1 ? "row" : "rows"}`);
}

// Equal instructions in one row lead to each of them: to the table of single ones, searched for what they have in common.
function toSingles(view, table, row) {
  const singles = { kernel_groups: "kernels", fusion_groups: "fusions", live_at_peak_groups: "live_at_peak" }[table.name];
  const name = columnOf(table, "name");
  if (!singles || !name || !placeOf(view, singles)) return "";
  const stem = textAt(name, row).split(".*")[0].split(" ×")[0];
  const others = ["shape", "source"].map((one) => columnOf(table, one)).filter(Boolean).map((one) => textAt(one, row));
  const words = [stem, ...others].filter((word) => word && !/ more$|^\(/.test(word)).map((word) => `"${word}"`);
  return `#${prefix(view)}table/${singles}/search/${encodeURIComponent(words.join(" "))}`;
}

// Names differ at both ends: a long one loses its middle, and the cell says the whole in its title.
function isCut(column, text) {
  return text.length > wide() && !NUMERIC.has(column.unit) && !column.wraps && text.split(" ").length <= SENTENCE;
}

function shortened(column, text) {
  if (!isCut(column, text)) return text;
  const letters = [...text];
  return `${letters.slice(0, wide() / 2 - 1).join("")}…${letters.slice(-wide() / 2).join("")}`;
}

function display(view, table, column, row) {
  const marked = markedChange(table, column, row);
  if (marked) return marked;
  const whole = textAt(column, row), text = shortened(column, whole);
  const isFirst = column === table.columns[0];
  const to = isFirst && table.links?.[row];
  if (to) return `<a href="${escaped(to)}">${escaped(text)}</a>`;
  if (!NAMES.has(column.name) || !text) return escaped(text);
  const named = toInstruction(view, whole, column.name === "name" ? placeAt(table, row) : {});
  if (named) return `<a href="${escaped(named)}">${escaped(text)}</a>`;
  const singles = isFirst && toSingles(view, table, row);
  return singles ? `<a href="${escaped(singles)}">${escaped(text)}</a>` : escaped(text);
}

async function makeTable(details) {
  await library("tables");
  return tableOf(details);
}

function tableOf(details) {
  const view = viewOf(details);
  const key = `${view}|${details.dataset.table}`;
  if (tables.has(key)) return tables.get(key);
  const table = data(view, "table", details.dataset.table);
  if (!table) return null;
  const width = details.clientWidth / LETTER;
  const shown = table.order.map((at) => table.columns[at]);
  const least = Math.min(...shown.map((column) => column.from ?? Infinity));
  const columns = shown.map((column) => ({
    title: escaped(column.heading),
    className: NUMERIC.has(column.unit) ? "figure" : "words",
    createdCell: (cell, _text, [row]) => {
      const whole = textAt(column, row);
      if (isCut(column, whole)) cell.title = whole;
      else if (whole.length > wide()) cell.classList.add("sentence");
    },
    visible: column.from !== null && (column.from <= width || column.from === least),
    type: NUMERIC.has(column.unit) ? "num" : "string",
    orderSequence: NUMERIC.has(column.unit) ? ["desc", "asc", ""] : ["asc", "desc", ""],
    data: ([row], type) => {
      if (type === "sort" || type === "type") return sortAt(column, row);
      return type === "display" ? display(view, table, column, row) : textAt(column, row);
    },
  }));
  const holder = element("table", { class: "display compact nowrap", "aria-label": table.title });
  details.append(element("div", { class: "holder", "data-of": table.name }, holder));
  details.classList.add("live");
  const isLong = table.rows > LONG;
  holder.parentElement.classList.toggle("long", isLong);
  const isSearched = table.rows > 5;
  const filter = isSearched ? filterLine(table) : null;
  const made = new window.DataTable(holder, {
    data: Array.from({ length: table.rows }, (_, row) => [row]), columns,
    order: [], autoWidth: false, deferRender: true, ordering: true,
    paging: isLong, scroller: isLong ? { displayBuffer: 6, loadingIndicator: false } : false,
    scrollY: isLong ? "26rem" : "", scrollX: true, scrollCollapse: true,
    buttons: [
      { extend: "colvis", text: "Columns", columns: shown.map((_column, at) => at), fade: 0, background: false },
      { text: "Copy as CSV", action: () => copyRows(table, made.rows({ search: "applied" }).indexes().toArray()) },
    ],
    layout: {
      topStart: isSearched ? ["search", () => filter.line] : null, topEnd: "buttons", bottomStart: isLong ? "info" : null, bottomEnd: null,
    },
    language: { search: "Search", info: "_TOTAL_ rows", infoFiltered: "of _MAX_", infoEmpty: "no rows", zeroRecords: "No row matches." },
  });
  const body = holder.closest(".dt-scroll-body"); // the keyboard scrolls it
  for (const [name, value] of Object.entries({ tabindex: "0", role: "group", "aria-label": table.title })) body.setAttribute(name, value);
  const entry = { view, table, made, shown, filter, filtered: null };
  tables.set(key, entry);
  filter?.onChange((text, column) => { setFilter(entry, text, column); made.draw(); });
  made.on("search.dt order.dt", () => noteState(entry));
  return entry;
}
