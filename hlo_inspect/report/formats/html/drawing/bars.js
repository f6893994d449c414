// Bars of one axis of amounts: stacked on one another, or grouped beside each other. They lie unless they are vertical.

const THICK = 0.7; // part of a line that its bars take
const THICKEST = 34; // pixels
const THIN = 4; // pixels of a bar without a line around it
const INSIDE = 6; // pixels on both sides of a text in a bar

// The bars as parts of lines: from where to where, and the place of a group among the groups.
function barParts({ data, layout }) {
  const heights = new Map();
  const groups = [...new Set(data.map((trace) => trace.group ?? ""))];
  return data.flatMap((trace) => {
    const [lines, lengths] = trace.is_vertical ? [trace.x, trace.y] : [trace.y, trace.x];
    return lines.map((line, at) => {
      const length = lengths[at], key = `${line}|${length < 0}`;
      const from = layout.bars === "stacked" ? heights.get(key) ?? 0 : 0;
      heights.set(key, from + length);
      return { trace, at, line, from, to: from + length, group: groups.indexOf(trace.group ?? ""), groups: groups.length };
    });
  });
}

DRAWERS.bar = (stage) => {
  const parts = barParts(stage.figure);
  const isVertical = Boolean(stage.figure.data[0]?.is_vertical);
  const amounts = parts.map((part) => part.to);
  addFrame(stage, isVertical ? [] : amounts, isVertical ? amounts : []);
  const line = (part) => `${part.line}|${part.group}`;
  const counts = new Map();
  for (const part of parts) counts.set(line(part), (counts.get(line(part)) ?? 0) + 1);
  for (const part of parts) addBar(stage, part, isVertical, counts.get(line(part)) === 1);
};

function addBar(stage, part, isVertical, isAlone) {
  const { trace, at } = part;
  const box = barBox(stage, part, isVertical);
  const isThin = Math.min(box.width, box.height) < THIN;
  const bar = svg("rect", { class: isThin ? "bar thin" : "bar", ...box, style: paint(trace.color) });
  stage.root.append(bar);
  addMark(stage, bar, box, trace.hovers[at], toRow(stage, trace.keys[at]));
  if (trace.texts?.[at] && !isVertical) addBarText(stage, box, trace.texts[at], trace.color, isAlone);
}

function barBox(stage, { line, from, to, group, groups }, isVertical) {
  const [along, across] = isVertical ? [stage.y, stage.x] : [stage.x, stage.y];
  const room = Math.abs(across(1) - across(0)) * THICK;
  const size = isVertical ? room / groups : Math.min(THICKEST, room / groups);
  const start = across(line) + (group - groups / 2) * size;
  const low = Math.min(along(from), along(to)), length = Math.max(1, Math.abs(along(to) - along(from)));
  return isVertical ? { x: start, y: low, width: size, height: length } : { x: low, y: start, width: length, height: size };
}

// A text is in its bar if there is room, else behind the bar if it is alone on its line, else it is left to the mouse.
function addBarText(stage, box, text, colour, isAlone) {
  const width = widthOf(text), y = box.y + box.height / 2 + 4;
  if (width + 2 * INSIDE <= box.width) {
    stage.root.append(svgText(box.x + box.width / 2, y, text, { "text-anchor": "middle", class: "inside", style: inked(colour) }));
  } else if (isAlone && box.x + box.width + INSIDE + width <= stage.width) {
    stage.root.append(svgText(box.x + box.width + INSIDE, y, text, { class: "inside" }));
  }
}
