// The dialog about one instruction.

// The first row of each table that is about an instruction. Of two of one name only tables that have places tell which is meant.
function rowsAbout(view, name, place) {
  const isOne = instructions(view).get(name).length === 1;
  const found = [];
  for (const key of blocks.keys()) {
    const [of, kind, table] = key.split("|");
    if (of !== view || kind !== "table" || table === "instructions" || !placeOf(view, table)) continue;
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
