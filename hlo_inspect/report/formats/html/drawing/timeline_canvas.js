// The canvas of a timeline: lanes of boxes, their names, the ticks, zoom and pan. A canvas draws ten thousand kernels within a frame;
// as many SVG elements would take a second.

const LANE = 36, BOX_TOP = 13, BOX = 21; // pixels of a stream, and of the boxes in it
const NAMED = 44; // pixels of a box from which on it has its name
const SHORTEST = 1e-9; // seconds that can fill the width

class TimelineCanvas {
  constructor({ area, figure, view }) {
    [this.trace] = figure.data;
    this.area = area;
    this.table = data(view, "table", "timeline");
    this.lanes = this.makeLanes();
    this.end = Math.max(...this.lanes.map((lane) => lane.end.at(-1)));
    [this.from, this.to] = [0, this.end];
    this.selected = null; // a place: the lane, and the number of the event in it
    this.canvas = element("canvas", { "aria-hidden": "true" });
    this.paper = this.canvas.getContext("2d");
  }

  // The events of each stream in the order of time, as arrays that a frame goes through quickly.
  makeLanes() {
    const [streams, begins, ends] = ["stream", "begin_s", "end_s"].map((name) => columnOf(this.table, name));
    const rows = new Map(this.trace.streams.map((stream) => [stream, []]));
    for (let row = 0; row < this.table.rows; row += 1) rows.get(valueAt(streams, row)).push(row);
    return [...rows.values()].map((of) => {
      of.sort((one, other) => valueAt(begins, one) - valueAt(begins, other));
      return { rows: of, begin: of.map((row) => valueAt(begins, row)), end: of.map((row) => valueAt(ends, row)) };
    });
  }

  nameOf(row) { return String(valueAt(columnOf(this.table, "name"), row)); }

  // ---- drawing -----------------------------------------------------------------------------------------------------------

  resize(stage) {
    this.stage = stage;
    this.width = stage.width;
    this.height = this.lanes.length * LANE + 22;
    const density = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(this.width * density);
    this.canvas.height = Math.round(this.height * density);
    this.canvas.style.width = `${this.width}px`;
    this.canvas.style.height = `${this.height}px`;
    this.density = density;
    stage.root = this.canvas;
    const legend = legendOf(this.trace.names.map((name, at) => [name, this.trace.colors[at]]));
    this.area.replaceChildren(this.controls, ...legend, this.canvas, stage.beside);
    this.draw();
  }

  // Draw once in the next frame, however many events ask for it.
  soon() {
    this.frame ??= requestAnimationFrame(() => { this.frame = null; this.draw(); });
  }

  draw() {
    const style = getComputedStyle(document.documentElement);
    const value = (name) => style.getPropertyValue(`--c-${name}`).trim();
    const names = this.trace.colors.map((colour) => colour.slice(1));
    this.fills = names.map(value);
    this.inks = names.map((name) => value(`on-${name}`));
    this.colours = { text: value("text"), quiet: value("quiet"), grid: value("grid") };
    const { paper } = this;
    paper.setTransform(this.density, 0, 0, this.density, 0, 0);
    paper.clearRect(0, 0, this.width, this.height);
    paper.font = `${FONT - 1}px system-ui, sans-serif`;
    this.drawTicks();
    this.lanes.forEach((lane, at) => this.drawLane(lane, at));
    if (this.selected) this.drawSelected();
  }

  x(time) { return ((time - this.from) / (this.to - this.from)) * this.width; }

  time(x) { return this.from + (x / this.width) * (this.to - this.from); }

  drawTicks() {
    const { paper, colours } = this, bottom = this.lanes.length * LANE;
    this.ticks = timeTicks(this.from, this.to, this.width);
    for (const { time, text } of this.ticks) {
      const x = this.x(time), width = paper.measureText(text).width;
      paper.fillStyle = colours.grid;
      paper.fillRect(Math.round(x), 0, 1, bottom + 4);
      paper.fillStyle = colours.quiet;
      paper.fillText(text, Math.max(0, Math.min(this.width - width, x - width / 2)), bottom + 17);
    }
  }

  // Boxes narrower than a pixel share it: the first one gives the colour.
  drawLane(lane, at) {
    const { paper } = this, top = at * LANE + BOX_TOP;
    paper.fillStyle = this.colours.quiet;
    paper.fillText(this.trace.streams[at], 0, at * LANE + 10);
    let filled = -1;
    for (let event = firstEndingAfter(lane, this.from); event < lane.rows.length && lane.begin[event] <= this.to; event += 1) {
      const from = Math.max(-2, this.x(lane.begin[event])), to = Math.min(this.width + 2, this.x(lane.end[event]));
      if (to - from < 1) {
        if (Math.floor(from) === filled) continue;
        filled = Math.floor(from);
      }
      const kind = this.trace.kinds[lane.rows[event]];
      paper.fillStyle = this.fills[kind];
      paper.fillRect(from, top, Math.max(1, to - from - (to - from > 4 ? 0.5 : 0)), BOX);
      if (to - from >= NAMED) this.drawName(lane.rows[event], kind, Math.max(0, from), to, top);
    }
  }

  drawName(row, kind, from, to, top) {
    const name = fitting(this.nameOf(row), to - from - 6, FONT - 1);
    if (!name) return;
    this.paper.fillStyle = this.inks[kind];
    this.paper.fillText(name, from + 3, top + 15);
  }

  drawSelected() {
    const { lane, event } = this.selected, { begin, end } = this.lanes[lane];
    const from = Math.max(-2, this.x(begin[event])), to = Math.min(this.width + 2, this.x(end[event]));
    this.paper.strokeStyle = this.colours.text;
    this.paper.lineWidth = 2;
    this.paper.strokeRect(from, lane * LANE + BOX_TOP - 1, Math.max(2, to - from), BOX + 2);
  }

  // ---- zoom and pan ------------------------------------------------------------------------------------------------------

  get isWhole() { return this.to - this.from >= this.end * 0.9999; }

  show(from, span) {
    const size = Math.min(this.end, Math.max(SHORTEST, span));
    this.from = Math.max(0, Math.min(this.end - size, from));
    this.to = this.from + size;
    this.soon();
  }

  // The time at `x` stays at its place.
  zoom(factor, x = this.width / 2) {
    const time = this.time(x), span = Math.max(SHORTEST, (this.to - this.from) * factor);
    this.show(time - (x / this.width) * span, span);
  }

  pan(pixels) { this.show(this.from + (pixels / this.width) * (this.to - this.from), this.to - this.from); }

  whole() { this.show(0, this.end); }

  // Show an event: in the middle, and wide enough for its name.
  lead(place) {
    const lane = this.lanes[place.lane], begin = lane.begin[place.event], length = lane.end[place.event] - begin;
    this.select(place);
    const span = this.to - this.from;
    const isNarrow = (length / span) * this.width < NAMED;
    const wanted = isNarrow ? (length * this.width) / (3 * NAMED) : Math.max(span, length * 1.2);
    if (isNarrow || begin < this.from || begin + length > this.to) this.show(begin + length / 2 - wanted / 2, wanted);
  }

  select(place) {
    this.selected = place;
    this.soon();
  }
}

// The first event of a lane that ends after a time; events of a stream follow each other.
function firstEndingAfter(lane, time) {
  let low = 0, high = lane.end.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (lane.end[middle] > time) high = middle;
    else low = middle + 1;
  }
  return low;
}
