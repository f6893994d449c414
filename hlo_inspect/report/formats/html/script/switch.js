// The switch of tables that answer one question by different keys: it shows one of them in their common place.

// The place of a table: the element that shows it, or can.
function placeOf(view, name) {
  const found = inView(view, `table/${name}`);
  return found ? found.closest("details.table") : null;
}

// Shows a table in its place. A table that was shown before stays as it was, with its filter and its order.
function choose(details, name) {
  const switched = details.querySelector(".choices");
  if (!switched || details.dataset.table === name) return;
  details.dataset.table = name;
  for (const button of switched.children) button.setAttribute("aria-pressed", String(button.dataset.choice === name));
  const table = data(viewOf(details), "table", name);
  details.querySelector(".subtitle").textContent = table.title;
  details.querySelector("summary .rows").textContent = `${table.rows.toLocaleString("en")} ${table.rows === 1 ? "row" : "rows"}`;
  for (const holder of details.querySelectorAll(":scope > .holder")) holder.hidden = holder.dataset.of !== name;
  if (details.open) makeTable(details);
}

function addSwitches(main) {
  for (const switched of main.querySelectorAll(".choices")) {
    switched.hidden = false;
    switched.addEventListener("click", (event) => {
      const { choice } = event.target.dataset;
      if (!choice) return;
      const details = switched.closest("details");
      choose(details, choice);
      history.replaceState(null, "", `#${prefix(viewOf(details))}table/${choice}`);
    });
  }
}

// The title of a table: that of its place with its label on the switch.
function titleOf(view, table) {
  const switched = placeOf(view, table.name).querySelector(".choices");
  if (!switched) return table.title;
  const label = [...switched.children].find((button) => button.dataset.choice === table.name).textContent;
  return `${switched.getAttribute("aria-label")}: ${label}`;
}
