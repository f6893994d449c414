// Pictures: figures of the page, drawn by Plotly in the colours of the reader's scheme.

const PAPER = 690; // pixels between the margins of A4
const LEGEND = 60;

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
