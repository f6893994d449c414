// What all pictures share: SVG elements in the colours of the palette, the legend, the text beside a mark, and the way from a mark
// to its row by mouse and by keys. A file of each kind of picture adds its function to DRAWERS.
"use strict";

const DRAWERS = {};
const FONT = 12; // pixels
const BESIDE = 14; // pixels between the mouse and its text
const pen = document.createElement("canvas").getContext("2d");

function svg(name, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

// Colours are those of the style sheet, so that a picture follows the reader's scheme without being drawn again.
const paint = (colour) => `fill: var(--c-${colour.slice(1)})`;
const inked = (colour) => `fill: var(--c-on-${colour.slice(1)})`;

function widthOf(text, size = FONT) {
  pen.font = `${size}px system-ui, sans-serif`;
  return pen.measureText(text).width;
}

// The text if it is no wider than the room, else without its middle: names differ at both ends. Empty if little would be left.
function fitting(text, room, size = FONT) {
  const width = widthOf(text, size);
  if (width <= room) return text;
  for (let kept = Math.floor((text.length * room) / width); kept > 2; kept -= 1) {
    const cut = `${text.slice(0, Math.ceil(kept / 2))}…${text.slice(text.length - Math.floor(kept / 2))}`;
    if (widthOf(cut, size) <= room) return cut;
  }
  return "";
}

const svgText = (x, y, text, more = {}) => svg("text", { x, y, ...more }, text);

// Draw a figure in its area, as wide as that or as `width`. A stage holds what is known of the drawing.
function drawFigure(area, figure, { view, width, height, label }) {
  const root = svg("svg", { class: "picture", width, height, "aria-hidden": "true" });
  const stage = { area, figure, view, width, height, marks: [], current: -1, root };
  const isFirst = !area.stage;
  area.stage = stage;
  area.setAttribute("aria-label", `${label}. Arrow keys lead from mark to mark.`);
  stage.cursor = svg("rect", { class: "cursor" });
  stage.beside = element("div", { class: "beside" });
  area.replaceChildren(stage.root, stage.beside);
  const listensItself = DRAWERS[figure.data[0].type](stage);
  addLegend(stage);
  stage.root.append(stage.cursor);
  if (isFirst && !listensItself) listen(area);
}

// A mark: its node, its box, the text beside it, and what a click does.
function addMark(stage, node, box, hover, act) {
  if (node) node.dataset.at = stage.marks.length;
  stage.marks.push({ box, hover, act });
}

// What a click on a mark of a row does: `key` is TABLE:ROW.
function toRow(stage, key) {
  return key ? () => { location.hash = `#${prefix(stage.view)}table/${key.replace(":", "/")}`; } : null;
}

function addLegend(stage) {
  const entries = new Map();
  for (const { name, color } of [...(stage.figure.layout.bands ?? []), ...stage.figure.data]) if (name && color) entries.set(name, color);
  stage.area.prepend(...legendOf([...entries]));
}

// The legend of names and their colours; none if there is one alone.
function legendOf(entries) {
  if (entries.length < 2) return [];
  const items = entries.map(([name, color]) => {
    const square = element("i");
    square.style.background = `var(--c-${color.slice(1)})`;
    return element("li", {}, square, name);
  });
  return [element("ul", { class: "legend" }, ...items)];
}

// ---- mouse and keys ----------------------------------------------------------------------------------------------------

function listen(area) {
  area.addEventListener("pointermove", (event) => {
    const at = markUnder(area.stage, event);
    if (at === area.stage.current && at < 0) return;
    if (at < 0) leave(area.stage);
    else enter(area.stage, at, event);
  });
  area.addEventListener("pointerleave", () => leave(area.stage));
  area.addEventListener("blur", () => leave(area.stage));
  area.addEventListener("click", (event) => area.stage.marks[markUnder(area.stage, event)]?.act?.());
  area.addEventListener("keydown", (event) => walk(area.stage, event));
}

function markUnder(stage, event) {
  if (stage.figure.layout.hover !== "x") return Number(event.target.closest?.("[data-at]")?.dataset.at ?? -1);
  const x = event.clientX - stage.root.getBoundingClientRect().left;
  const distance = (mark) => Math.abs(mark.box.x + mark.box.width / 2 - x);
  return stage.marks.reduce((best, mark, at) => (best < 0 || distance(mark) < distance(stage.marks[best]) ? at : best), -1);
}

// Show which mark is meant, and its text: beside the mouse, or beside the mark if keys led there.
function enter(stage, at, event = null) {
  stage.current = at;
  const { box, hover } = stage.marks[at];
  placeCursor(stage, box);
  const around = stage.root.getBoundingClientRect();
  if (event) showBeside(stage, hover, event.clientX, event.clientY);
  else showBeside(stage, hover, around.left + box.x + box.width / 2, around.top + box.y + box.height);
  if (!event) say(hover.replaceAll("\n", ", "));
}

function placeCursor(stage, box) {
  for (const [name, value] of Object.entries({ x: box.x - 1.5, y: box.y - 1.5, width: box.width + 3, height: box.height + 3 })) {
    stage.cursor.setAttribute(name, value);
  }
  stage.cursor.classList.add("shown");
}

// Show a text beside a place of the window: inside of the picture's width, and above the place if there is no room below.
function showBeside({ area, beside }, text, x, y) {
  const [title, ...lines] = text.split("\n");
  beside.replaceChildren(element("b", {}, title), ...lines.map((line) => element("p", {}, line)));
  beside.classList.add("shown");
  const { left, top, width: room } = area.getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = beside;
  const isAbove = y + BESIDE + height > window.innerHeight;
  beside.style.left = `${Math.max(0, Math.min(x - left + BESIDE, room - width))}px`;
  beside.style.top = `${y - top + (isAbove ? -BESIDE - height : BESIDE)}px`;
}

function leave(stage) {
  stage.current = -1;
  stage.cursor.classList.remove("shown");
  stage.beside.classList.remove("shown");
}

// Arrows lead to other marks, Enter does what a click does.
function walk(stage, event) {
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  const last = stage.marks.length - 1;
  if (event.target !== stage.area || last < 0) return;
  if (step) enter(stage, Math.max(0, Math.min(last, stage.current + step)));
  else if (event.key === "Home") enter(stage, 0);
  else if (event.key === "End") enter(stage, last);
  else if (event.key === "Enter") stage.marks[stage.current]?.act?.();
  else return;
  event.preventDefault();
}
