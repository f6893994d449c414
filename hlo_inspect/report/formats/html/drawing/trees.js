// Trees as icicles (levels below each other) and as treemaps (areas inside of areas). A click enters a node, the path above leads out.

const LEVELS = { icicle: 5, treemap: 4 };
const HIGHEST = 64; // pixels of a level
const THINNEST = 2; // pixels of a node that is drawn
const HEAD = 20; // pixels of the name of an area with others inside
const PATH = 30;

DRAWERS.icicle = DRAWERS.treemap = (stage) => {
  const [trace] = stage.figure.data;
  const tree = treeOf(trace);
  stage.area.tree = { tree, trace };
  enterNode(stage, stage.area.root ?? 0);
};

// Children and totals of each node. Parents come before their children.
function treeOf({ parents, values }) {
  const children = values.map(() => []), totals = values.map((value) => value ?? 0);
  parents.forEach((parent, node) => { if (parent !== null) children[parent].push(node); });
  for (let node = parents.length - 1; node > 0; node -= 1) totals[parents[node]] += totals[node];
  return { children, totals };
}

function enterNode(stage, node) {
  const { area } = stage, { tree, trace } = area.tree;
  area.root = node < trace.labels.length ? node : 0;
  stage.marks = [];
  const cursor = stage.cursor;
  stage.root.replaceChildren(cursor);
  leave(stage);
  addPath(stage);
  const top = area.root ? PATH : 0;
  const box = { x: 0, y: top, width: stage.width, height: stage.height - top };
  const levels = Math.min(LEVELS.icicle, levelsOf(tree, area.root));
  if (trace.type === "icicle") addLevel(stage, tree, trace, area.root, { ...box, height: Math.min(HIGHEST, box.height / levels) }, levels);
  else addArea(stage, tree, trace, area.root, box, LEVELS.treemap);
  stage.root.append(cursor);
}

// The levels of a node and of those inside of it, up to as many as are drawn.
function levelsOf(tree, node, most = LEVELS.icicle) {
  return most === 1 ? 1 : 1 + Math.max(0, ...tree.children[node].map((child) => levelsOf(tree, child, most - 1)));
}

// Links to the nodes around this one, the outermost first.
function addPath(stage) {
  const { trace } = stage.area.tree;
  const path = [];
  for (let node = stage.area.root; node !== null; node = trace.parents[node]) path.unshift(node);
  const buttons = path.map((node, at) => {
    const button = element("button", { type: "button", ...(at === path.length - 1 ? { "aria-current": "true" } : {}) }, trace.labels[node]);
    button.addEventListener("click", () => { enterNode(stage, node); stage.area.focus(); });
    return button;
  });
  stage.area.querySelector(".path")?.remove();
  if (path.length > 1) stage.area.prepend(element("div", { class: "path" }, ...buttons));
}

function addNode(stage, tree, trace, node, box) {
  const rect = svg("rect", { class: "node", ...box, style: paint(trace.colors[node]) });
  stage.root.append(rect);
  const isEntered = tree.children[node].length && node !== stage.area.root;
  addMark(stage, rect, box, trace.hovers[node], isEntered ? () => enterNode(stage, node) : null);
}

function addNodeText(stage, trace, node, box, isInOneLine) {
  const style = inked(trace.colors[node]), name = fitting(trace.labels[node], box.width - 8);
  if (!name || box.height < FONT + 4) return;
  const amount = trace.texts[node];
  if (isInOneLine) {
    const both = `${trace.labels[node]}  ${amount}`;
    stage.root.append(svgText(box.x + 4, box.y + 14, widthOf(both) < box.width - 8 ? both : name, { class: "inside", style }));
    return;
  }
  stage.root.append(svgText(box.x + 4, box.y + 15, name, { class: "inside", style }));
  if (box.height > 2 * FONT + 8 && widthOf(amount) < box.width - 8) {
    stage.root.append(svgText(box.x + 4, box.y + 31, amount, { class: "inside", style }));
  }
}

// ---- icicle ------------------------------------------------------------------------------------------------------------

function addLevel(stage, tree, trace, node, box, levels) {
  const inner = { ...box, width: Math.max(1, box.width - 1), height: box.height - 1 };
  addNode(stage, tree, trace, node, inner);
  addNodeText(stage, trace, node, inner, false);
  if (levels === 1) return;
  let { x } = box;
  for (const child of tree.children[node]) {
    const width = (box.width * tree.totals[child]) / (tree.totals[node] || 1);
    if (width >= THINNEST) addLevel(stage, tree, trace, child, { ...box, x, y: box.y + box.height, width }, levels - 1);
    x += width;
  }
}

// ---- treemap -----------------------------------------------------------------------------------------------------------

function addArea(stage, tree, trace, node, box, levels) {
  if (box.width < THINNEST || box.height < THINNEST) return;
  addNode(stage, tree, trace, node, box);
  const children = tree.children[node].filter((child) => tree.totals[child] > 0)
    .sort((one, other) => tree.totals[other] - tree.totals[one]);
  const isSplit = levels > 1 && children.length && box.height > 2 * HEAD && box.width > HEAD;
  addNodeText(stage, trace, node, box, Boolean(isSplit));
  if (!isSplit) return;
  const inside = { x: box.x + 2, y: box.y + HEAD, width: box.width - 4, height: box.height - HEAD - 2 };
  squarified(children, tree.totals, inside).forEach((place, at) => addArea(stage, tree, trace, children[at], place, levels - 1));
}

// Boxes with areas in proportion to the totals, as square as possible: rows along the shorter side of what is left (Bruls, Huizing
// and van Wijk, 2000). The largest node comes first.
function squarified(nodes, totals, box) {
  let sum = nodes.reduce((all, node) => all + totals[node], 0), free = { ...box };
  const places = [];
  for (let start = 0; start < nodes.length;) {
    const side = Math.min(free.width, free.height), unit = (free.width * free.height) / sum;
    let end = start + 1, row = totals[nodes[start]];
    const worst = (all, from, to) => {
      const length = (all * unit) / side;
      return Math.max(...nodes.slice(from, to).map((node) => ratio((totals[node] * unit) / length, length)));
    };
    while (end < nodes.length && worst(row + totals[nodes[end]], start, end + 1) <= worst(row, start, end)) row += totals[nodes[end++]];
    places.push(...rowPlaces(nodes.slice(start, end), totals, free, row, sum));
    free = rest(free, row / sum);
    sum -= row;
    start = end;
  }
  return places;
}

const ratio = (one, other) => Math.max(one / other, other / one);

function rowPlaces(nodes, totals, free, row, sum) {
  const isWide = free.width >= free.height, part = row / sum;
  let done = 0;
  return nodes.map((node) => {
    const from = done / row, size = totals[node] / row;
    done += totals[node];
    return isWide
      ? { x: free.x, y: free.y + from * free.height, width: free.width * part, height: size * free.height }
      : { x: free.x + from * free.width, y: free.y, width: size * free.width, height: free.height * part };
  });
}

function rest(free, part) {
  const taken = part * Math.max(free.width, free.height);
  return free.width >= free.height
    ? { ...free, x: free.x + taken, width: free.width - taken }
    : { ...free, y: free.y + taken, height: free.height - taken };
}
