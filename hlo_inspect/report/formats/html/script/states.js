// What a reader has done to a table stands in the address: `#table/kernels/search/dot/filter/bytes/>= 64 KiB/sort/bytes/desc`.

const STATES = { search: 1, filter: 2, sort: 2 }; // and how many parts of the address follow

function stateOf({ made, shown, filtered }) {
  const [order] = made.order();
  return [
    ...(made.search() ? ["search", made.search()] : []),
    ...(filtered ? ["filter", filtered.column, filtered.text] : []),
    ...(order?.[1] ? ["sort", shown[order[0]].name, order[1]] : []),
  ];
}

// Put the state into the address, unless that is where it comes from.
function noteState(entry) {
  if (entry.isFollowing) return;
  const parts = ["table", entry.table.name, ...stateOf(entry)].map(encodeURIComponent);
  history.replaceState(null, "", `#${prefix(entry.view)}${parts.join("/")}`);
}

// Take the state from the parts of an address; what it does not name is as in the beginning.
function takeState(entry, parts) {
  const state = { search: "", filter: null, sort: null };
  for (let at = 0; Object.hasOwn(STATES, parts[at]); at += 1 + STATES[parts[at]]) state[parts[at]] = parts.slice(at + 1, at + 1 + STATES[parts[at]]);
  setState(entry, state);
}

function setState(entry, { search, filter, sort }) {
  const { made, table, shown } = entry;
  entry.isFollowing = true;
  made.search(String(search));
  if (entry.filter) showFilter(entry, filter?.[1] ?? "", table.columns.findIndex((column) => column.name === filter?.[0]));
  const sorted = sort ? shown.findIndex((column) => column.name === sort[0]) : -1;
  if (sorted >= 0) made.order([sorted, sort[1] === "asc" ? "asc" : "desc"]);
  else if (sort === null) made.order([]);
  made.draw();
  entry.isFollowing = false;
}

function showFilter(entry, text, at) {
  const { choice, field } = entry.filter, column = at < 0 ? Number(choice.value) : at;
  choice.value = String(column);
  field.value = text;
  setFilter(entry, text, column);
}
