// Points and lines on two axes, with bands behind them, and notes that never run into each other.

const POINT = 9; // pixels of a mark without a size
const LEAST = 6;

DRAWERS.points = DRAWERS.line = (stage) => {
  const { data, layout } = stage.figure;
  addFrame(stage, data.flatMap((trace) => trace.x), data.flatMap((trace) => trace.y).map((value) => value ?? 0));
  for (const band of layout.bands ?? []) addBand(stage, band);
  for (const trace of data) {
    if (trace.type === "line") addLine(stage, trace);
    else addPoints(stage, trace);
  }
  addNotes(stage, layout.notes ?? []);
};

function addBand(stage, band) {
  const { top, bottom } = stage.plot, x = stage.x(band.from);
  const box = { x, y: top, width: Math.max(0.5, stage.x(band.to) - x), height: bottom - top };
  stage.root.append(svg("rect", { class: "band", ...box, style: paint(band.color) }));
}

// A line through its points; a stepped one stays at a value until the next point. It breaks where a value is missing.
function addLine(stage, trace) {
  let path = "", isOpen = false;
  trace.x.forEach((value, at) => {
    const x = stage.x(value).toFixed(1);
    if (trace.y[at] === null) { isOpen = false; return; }
    const y = stage.y(trace.y[at]).toFixed(1);
    path += isOpen ? (trace.is_stepped ? `H${x}V${y}` : `L${x},${y}`) : `M${x},${y}`;
    isOpen = true;
  });
  if (trace.is_stepped && isOpen) path += `H${Math.min(stage.plot.right, stage.x(stage.figure.layout.x.range?.[1] ?? trace.x.at(-1))).toFixed(1)}`;
  stage.root.append(svg("path", { class: "line", d: path, style: `stroke: var(--c-${trace.color.slice(1)})` }));
  trace.keys?.forEach((key, at) => {
    if (trace.y[at] === null) return;
    const box = { x: stage.x(trace.x[at]) - 3, y: stage.y(trace.y[at]) - 3, width: 6, height: 6 };
    const dot = trace.colors && svg("circle", { cx: box.x + 3, cy: box.y + 3, r: 3, style: paint(trace.colors[at]) });
    if (dot) stage.root.append(dot);
    addMark(stage, dot, box, trace.hovers[at], toRow(stage, key));
  });
}

// Larger points are behind smaller ones.
function addPoints(stage, trace) {
  const sizes = trace.x.map((_, at) => Math.max(LEAST, trace.sizes?.[at] ?? POINT));
  const order = trace.x.map((_, at) => at).sort((one, other) => sizes[other] - sizes[one]);
  for (const at of order) {
    const radius = sizes[at] / 2, cx = stage.x(trace.x[at]), cy = stage.y(trace.y[at]);
    const point = svg("circle", { class: "point", cx, cy, r: radius, style: paint(trace.color) });
    stage.root.append(point);
    const box = { x: cx - radius, y: cy - radius, width: 2 * radius, height: 2 * radius };
    addMark(stage, point, box, trace.hovers[at], toRow(stage, trace.keys[at]));
  }
}

// Each note is at the first of several places that no other note has; the highest note chooses first. One without a place is left
// out: its mark has its text beside the mouse.
function addNotes(stage, notes) {
  const taken = [];
  const sorted = [...notes].sort((one, other) => stage.y(one.y) - stage.y(other.y));
  for (const note of sorted) {
    const place = freePlace(stage, note, taken);
    if (!place) continue;
    taken.push(place);
    const x = stage.x(note.x), y = stage.y(note.y);
    if (!note.is_line) {
      const nearest = Math.max(place.x, Math.min(place.x + place.width, x));
      stage.root.append(svg("line", { class: "leader", x1: x, y1: y, x2: nearest, y2: place.y > y ? place.y : place.y + place.height }));
    }
    stage.root.append(svgText(place.x, place.y + place.height - 4, note.text, { class: note.is_line ? "note quiet" : "note" }));
  }
}

function freePlace(stage, note, taken) {
  const width = widthOf(note.text), height = 16, x = stage.x(note.x), y = stage.y(note.y);
  const asides = note.is_line ? [-width, -width / 2] : [6, -width - 6, -width / 2];
  const offsets = note.is_line ? [-height - 1, 2] : [-28, 14, -46, 32, -64, 50];
  const places = offsets.flatMap((up) => asides.map((aside) => ({ x: x + aside, y: y + up, width, height })));
  const isInside = (box) => box.x >= 0 && box.x + box.width <= stage.width && box.y >= 0 && box.y + height <= stage.plot.bottom;
  return places.find((box) => isInside(box) && !taken.some((other) => meets(box, other)));
}

const meets = (one, other) =>
  one.x < other.x + other.width + 4 && other.x < one.x + one.width + 4 && one.y < other.y + other.height && other.y < one.y + one.height;
