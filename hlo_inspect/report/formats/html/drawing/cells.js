// The devices of a mesh: a cell for each, the most minor axis from left to right.

const CELL_TEXT = 11; // pixels
const WIDEST = 120;

DRAWERS.cells = (stage) => {
  const [trace] = stage.figure.data, { x, y } = stage.figure.layout;
  const top = y.title ? 22 : 4, bottom = stage.height - 22;
  const width = Math.min(WIDEST, stage.width / x.size), height = (bottom - top) / y.size;
  trace.x.forEach((column, at) => {
    const box = { x: column * width + 1, y: top + trace.y[at] * height + 1, width: Math.max(1, width - 2), height: Math.max(1, height - 2) };
    const cell = svg("rect", { ...box, style: paint(trace.color) });
    stage.root.append(cell);
    addMark(stage, cell, box, trace.hovers[at], toRow(stage, trace.keys[at]));
    if (trace.texts[at] && widthOf(trace.texts[at], CELL_TEXT) < box.width && box.height > CELL_TEXT) addCellText(stage, box, trace, at);
  });
  if (y.title) stage.root.append(svgText(0, 14, y.title, { class: "title" }));
  stage.root.append(svgText(0, stage.height - 6, x.title, { class: "title" }));
};

function addCellText(stage, box, trace, at) {
  const place = [box.x + box.width / 2, box.y + box.height / 2 + 4];
  const looks = { class: "inside", "text-anchor": "middle", style: `${inked(trace.color)}; font-size: ${CELL_TEXT}px` };
  stage.root.append(svgText(...place, trace.texts[at], looks));
}
