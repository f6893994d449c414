// The data blocks of the page: tables and pictures of each view, read when they are first needed.

const blocks = new Map();
function noteBlocks() {
  for (const block of document.querySelectorAll("script[data-view]")) {
    const { view, table, picture } = block.dataset;
    blocks.set(table === undefined ? `${view}|picture|${picture}` : `${view}|table|${table}`, block);
  }
}
noteBlocks();

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
