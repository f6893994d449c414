// Instructions by name and place, and the links to them.

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
