// The frame of a figure with two axes: the room for labels, the lines of the grid, and the scales from values to pixels.

const LABEL = 18; // pixels between baselines
const GAP = 8;
const MOST = 0.4; // part of the width that names of lines can take
const ROOM = 1.03; // beyond the largest value

function scale(axis, [low, high], from, to) {
  const place = axis.is_log ? Math.log10 : Number;
  const first = place(low), span = place(high) - first || 1;
  return (value) => from + ((place(value) - first) / span) * (to - from);
}

// The ends of an axis: its own, or those of the values and of 0.
function ends(axis, values) {
  if (axis.range) return axis.range;
  const low = values.reduce((least, value) => Math.min(least, value), 0) * ROOM;
  const high = values.reduce((most, value) => Math.max(most, value), 0) * ROOM;
  return low === high ? [0, 1] : [low, high];
}

// Lay out the axes for these values, and draw them. The stage gets the plot's box, and the scales `x` and `y`.
function addFrame(stage, xs, ys) {
  const { x, y } = stage.figure.layout;
  const room = stage.width * MOST;
  const names = y.labels.map((label) => fitting(label, room));
  const left = Math.max(0, ...names.map((name) => widthOf(name))) + GAP + 2;
  const top = y.title ? LABEL + 4 : 6;
  const bottom = stage.height - LABEL - (x.title ? LABEL : 0) - 2;
  const right = stage.width - 16;
  stage.plot = { left, top, right, bottom };
  stage.x = scale(x, ends(x, xs), left, right);
  stage.y = scale(y, ends(y, ys), bottom, top);
  addVertical(stage, x);
  addHorizontal(stage, y, names);
  if (x.title) stage.root.append(svgText((left + right) / 2, stage.height - 4, x.title, { class: "title", "text-anchor": "middle" }));
  if (y.title) stage.root.append(svgText(0, 12, y.title, { class: "title" }));
}

// Labels of the lower axis: those that would run into the one before are left out.
function addVertical(stage, axis) {
  const { top, bottom, left, right } = stage.plot;
  let free = -Infinity;
  axis.ticks.forEach((tick, at) => {
    const x = stage.x(tick);
    if (x < left - 1 || x > right + 1) return;
    if (!axis.is_names) stage.root.append(svg("line", { class: tick === 0 ? "zero" : "grid", x1: x, x2: x, y1: top, y2: bottom }));
    const half = widthOf(axis.labels[at]) / 2;
    const middle = Math.max(half, Math.min(stage.width - half, x));
    if (middle - half < free) return;
    free = middle + half + GAP;
    stage.root.append(svgText(middle, bottom + LABEL - 2, axis.labels[at], { class: "tick", "text-anchor": "middle" }));
  });
}

function addHorizontal(stage, axis, names) {
  const { left, right, top, bottom } = stage.plot;
  axis.ticks.forEach((tick, at) => {
    const y = stage.y(tick);
    if (y < top - 1 || y > bottom + 1) return;
    if (!axis.is_names) stage.root.append(svg("line", { class: tick === 0 ? "zero" : "grid", x1: left, x2: right, y1: y, y2: y }));
    const label = svgText(left - GAP, y + 4, names[at], { class: axis.is_names ? "name" : "tick", "text-anchor": "end" });
    stage.root.append(label);
  });
}
