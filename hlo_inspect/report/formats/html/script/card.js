// The card of one instruction: what it is, its line, its figures, its neighbours, and what else its source line makes.

const FIGURES = new Set(["kernels", "params"]); // tables that have the figures of an instruction
const ELSEWHERE = new Set(["line", "step_share", "number", "memory_space"]); // columns of these that the card leaves out

// The rows of the tables of a view by a text in one of their columns: [table, row], in the order of the tables.
const indexes = new Map();
function rowsBy(view, name, columnIn) {
  if (!indexes.has(`${view}|${name}`)) {
    const index = new Map();
    for (const key of blocks.keys()) {
      const [of, kind, table] = key.split("|");
      if (of !== view || kind !== "table" || !placeOf(view, table)) continue;
      const shown = data(view, "table", table), column = columnIn(shown);
      for (let row = 0; column && row < shown.rows; row += 1) {
        const value = valueAt(column, row);
        if (index.has(value)) index.get(value).push([shown, row]);
        else index.set(value, [[shown, row]]);
      }
    }
    indexes.set(`${view}|${name}`, index);
  }
  return indexes.get(`${view}|${name}`);
}

// The first row of each table that is about an instruction. Of two of one name only tables that have places tell which is meant.
function rowsAbout(view, name, place) {
  const isOne = instructions(view).get(name).length === 1;
  const first = new Map();
  for (const [table, row] of rowsBy(view, "name", (shown) => columnOf(shown, "name")).get(name) ?? []) {
    const isMeant = (isOne || PLACE.some((one) => columnOf(table, one))) && agree(place, placeAt(table, row));
    if (isMeant && !first.has(table)) first.set(table, row);
  }
  return [...first];
}

// The rows about a source line, in tables that have one for each line.
function rowsOfSource(view, source) {
  const ofLines = (table) => (table.columns[0].name === "source" && table.name !== "call_stacks" ? table.columns[0] : null);
  return rowsBy(view, "source", ofLines).get(source) ?? [];
}

// The lines of the instructions of a view, which wait compressed.
const linesOf = new Map();
function lines(view) {
  if (!linesOf.has(view)) {
    const block = document.querySelector(`script[data-lines-of="${view}"]`);
    linesOf.set(view, block ? unpacked(block).then(JSON.parse) : Promise.resolve([]));
  }
  return linesOf.get(view);
}

// An instruction by its name, and by its row where others have this name; without the row, links to each of them.
function showInstruction(view, name, number) {
  const rows = instructions(view).get(name);
  if (!rows) return false;
  const row = rows.length === 1 ? rows[0] : rows.find((one) => String(one) === number);
  const dialog = document.getElementById("instruction");
  const close = element("button", { type: "button" }, "Close");
  close.addEventListener("click", () => dialog.close());
  const headline = element("h2", {}, element("span", { id: "instruction-name" }, name));
  const content = row === undefined ? eachOfName(view, rows) : card(view, name, row, headline);
  dialog.replaceChildren(element("header", {}, headline, close), ...content);
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
  return true;
}

function eachOfName(view, rows) {
  const table = data(view, "table", "instructions");
  const links = rows.map((row) => {
    const place = placeAt(table, row);
    return element("li", {}, `line ${place.line}: `, element("a", { href: toInstruction(view, valueAt(columnOf(table, "name"), row), place) }, `in ${place.computation}`));
  });
  return [element("ul", {}, ...links)];
}

function card(view, name, row, headline) {
  const table = data(view, "table", "instructions");
  const place = placeAt(table, row);
  const cell = (column) => (columnOf(table, column) ? textAt(columnOf(table, column), row) : "");
  const about = rowsAbout(view, name, place);
  headline.append(...headlineWords(about, cell("opcode")).map((word) => element("span", {}, ` · ${word}`)));
  const figures = about.find(([held]) => FIGURES.has(held.name));
  return [
    element("p", { class: "kind" }, [cell("opcode"), cell("shape")].filter(Boolean).join(" ")),
    lineOfText(view, row),
    ...(figures ? [figuresOf(...figures)] : []),
    terms([
      ["source", sourceLine(view, table, row)],
      ["computes", cell("computes")],
      ["operands", neighbours(view, cell("operands"), place)],
      ["used by", neighbours(view, cell("used_by"), place)],
      ["called from", stackOf(view, valueAt(columnOf(table, "source"), row))],
      ["op name", cell("op_name")],
      ["computation", cell("computation")],
      ["line", cell("line")],
      ["in tables", rowLinks(view, about)],
    ]),
  ];
}

// Its part of the step, and its phase or its role.
function headlineWords(about, opcode) {
  const first = (name) => {
    for (const [table, row] of about) {
      const column = columnOf(table, name);
      if (column && valueAt(column, row)) return textAt(column, row);
    }
    return "";
  };
  const share = first("step_share");
  const role = opcode === "parameter" ? first("role").replaceAll("_", " ") : "";
  return [share && `${share} of the step`, role || first("phase")].filter(Boolean);
}

// The line of the text, with a button; it comes a moment later.
function lineOfText(view, row) {
  const text = element("pre", { class: "line", tabindex: "0" });
  lines(view).then((all) => {
    if (!all[row]) return;
    text.textContent = all[row];
    text.after(copyButton("Copy line", all[row], "the line"));
  });
  return text;
}

function copyButton(label, text, what) {
  const button = element("button", { type: "button" }, label);
  button.addEventListener("click", () => copyText(text, what));
  return button;
}

// What is said of an instruction, without what is not there.
function terms(pairs) {
  const list = element("dl");
  for (const [label, content] of pairs) if (content) list.append(element("dt", {}, label), element("dd", {}, content));
  return list;
}

// The figures of an instruction that are not zero: times, then bytes, then the others.
const UNITS = ["seconds", "bytes", "flops"];
function figuresOf(table, row) {
  const order = ({ unit }) => [...UNITS, unit].indexOf(unit);
  const shown = table.order.map((at) => table.columns[at])
    .filter((column) => NUMERIC.has(column.unit) && !ELSEWHERE.has(column.name) && textAt(column, row) && valueAt(column, row) !== 0)
    .sort((one, other) => order(one) - order(other));
  const figures = shown.map((column) => element("div", {}, element("dt", {}, column.heading), element("dd", {}, textAt(column, row))));
  return element("dl", { class: "figures" }, ...figures);
}

// Names as a list of links, each with the shape of what it makes.
function neighbours(view, text, place) {
  if (!text) return null;
  const table = data(view, "table", "instructions");
  const items = text.split(", ").map((name) => {
    const rows = rowsAt(view, name, { computation: place.computation });
    const shape = rows.length === 1 ? textAt(columnOf(table, "shape"), rows[0]) : "";
    return element("li", {}, instructionLink(view, name, { computation: place.computation }), shape && element("span", { class: "quiet" }, ` ${shape}`));
  });
  return element("ul", {}, ...items);
}

// The source line, and on request everything that it makes.
function sourceLine(view, table, row) {
  const column = columnOf(table, "source");
  const source = valueAt(column, row);
  if (!source) return null;
  const others = [];
  for (let other = 0; other < table.rows; other += 1) if (valueAt(column, other) === source) others.push(other);
  const names = columnOf(table, "name"), opcodes = columnOf(table, "opcode");
  const items = others.map((other) => {
    const name = valueAt(names, other);
    return element("li", {}, instructionLink(view, name, placeAt(table, other)), element("span", { class: "quiet" }, ` ${textAt(opcodes, other)}`));
  });
  const everything = element("details", {},
    element("summary", {}, `everything of this line: ${others.length === 1 ? "1 instruction" : `${others.length} instructions`}`),
    element("ul", {}, ...items), rowLinks(view, rowsOfSource(view, source)) ?? "");
  return element("div", {}, `${textAt(column, row)} `, copyButton("Copy", source, "the source line"), everything);
}

function rowLinks(view, rows) {
  if (!rows.length) return null;
  const links = rows.map(([table, at]) => element("li", {}, element("a", { href: `#${prefix(view)}table/${table.name}/${at}` }, titleOf(view, table))));
  return element("ul", {}, ...links);
}

// The frames from which a line was called.
function stackOf(view, source) {
  const stacks = data(view, "table", "call_stacks");
  if (!stacks || !source) return null;
  const [sources, frames, functions] = ["source", "frame", "function"].map((name) => columnOf(stacks, name));
  const items = [];
  for (let row = 0; row < stacks.rows; row += 1) {
    if (valueAt(sources, row) === source) items.push(element("li", {}, `${textAt(frames, row)} ${textAt(functions, row)}`));
  }
  return items.length ? element("ol", {}, ...items) : null;
}
