// The field that filters rows by one column, in the words of the option --filter.

const FACTORS = JSON.parse(document.getElementById("quantities").textContent);
const EXAMPLES = {
  bytes: ">= 64 KiB", flops: ">= 1 GFLOP", seconds: ">= 5 µs", share: ">= 10 %", count: ">= 2", number: ">= 2",
  bytes_per_s: ">= 100 GB/s", flops_per_s: ">= 1 TFLOP/s", bool: "= yes", text: "= fusion or ~ dot",
};
let faults = 0;
const LONGEST_QUANTITY = 64; // characters
const numberIn = (values, at) => (values[at] === null ? null : Number(String(values[at]).replace("inf", "Infinity")));
const ORDER = {
  "<": (value, wanted) => value < wanted,
  "<=": (value, wanted) => value <= wanted,
  ">": (value, wanted) => value > wanted,
  ">=": (value, wanted) => value >= wanted,
};

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

// ">= 1 MiB", "= all-gather", "text": the test of a cell by its row, or null where the column has no such values. With an
// operator it is that of the option --filter: > and >= hold by a lower bound, < and <= by an upper one. Without an operator the
// cell contains the text.
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
  const bounds = operator.startsWith(">") ? column.bounds : column.limits;
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

// A line that takes "size >= 1 MiB" or "kind = all-gather" for one column.
function filterLine(table) {
  const choice = element("select", { "aria-label": "Column to filter" });
  table.columns.forEach((column, at) => {
    if (!column.machine) choice.append(element("option", { value: String(at) }, column.heading));
  });
  const fault = element("p", { class: "fault", id: `fault-${(faults += 1)}`, role: "alert" });
  const field = element("input", {
    type: "search", placeholder: ">= 1 MiB, = fusion, ~ dot, text", "aria-label": "Filter", "aria-describedby": fault.id,
  });
  const line = element("div", { class: "filter" }, element("label", {}, "Filter "), choice, field, fault);
  const onChange = (use) => {
    const apply = () => use(field.value, Number(choice.value));
    field.addEventListener("input", apply);
    choice.addEventListener("change", apply);
  };
  return { line, choice, field, fault, onChange };
}

// Filter a table by the text for a column, and say what is wrong with the text.
function setFilter(entry, text, at) {
  const { table, made, filter } = entry, column = table.columns[at], test = cellTest(column, text);
  const isWrong = Boolean(text.trim()) && !test;
  filter.field.setAttribute("aria-invalid", String(isWrong));
  filter.fault.textContent = isWrong ? `not a value of ${column.heading}; for example ${EXAMPLES[column.unit] ?? EXAMPLES.number}` : "";
  made.search.fixed("filter", test ? (_text, _data, row) => test(row) : null);
  entry.filtered = test ? { column: column.name, text } : null;
}
