// The timeline of a step on a canvas: the wheel zooms, a drag pans, and a search leads to an instruction. A canvas draws ten
// thousand kernels within a frame; as many SVG elements would take a second.

const LANE = 36, BOX_TOP = 13, BOX = 21; // pixels of a stream, and of the boxes in it
const TICK_ROOM = 100; // pixels from tick to tick
const NAMED = 44; // pixels of a box from which on it has its name
const CLOSE = 4; // pixels between the mouse and a mark that is meant
const SHORTEST = 1e-9; // seconds that can fill the width
const UNITS = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]];

DRAWERS.timeline = (stage) => {
  stage.area.timeline ??= new Timeline(stage);
  stage.area.timeline.resize(stage);
  return true;
};

// Times of ticks as steps of 1, 2 or 5, and their texts with the digits that tell them apart.
function timeTicks(from, to, width) {
  const least = ((to - from) * TICK_ROOM) / width;
  const power = 10 ** Math.floor(Math.log10(least));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= least);
  const first = Math.ceil(from / step - 1e-9), count = Math.floor(to / step + 1e-9) - first + 1;
  return Array.from({ length: Math.max(0, count) }, (_, at) => {
    const time = (first + at) * step;
    return { time, text: timeText(time, step, to) };
  });
}

// A time in the unit that fits `largest`, with as many digits as tell times apart that differ by a step.
function timeText(time, step, largest = time) {
  const [size, unit] = UNITS.find(([one]) => largest >= one) ?? UNITS.at(-1);
  const digits = Math.max(0, Math.min(9, Math.ceil(-Math.log10(step / size) - 1e-9)));
  return `${(time / size).toFixed(digits)} ${unit}`;
}

class Timeline {
  constructor({ area, figure, view }) {
    [this.trace] = figure.data;
    this.area = area;
    this.view = view;
    this.table = data(view, "table", "timeline");
    this.lanes = this.makeLanes();
    this.end = Math.max(...this.lanes.map((lane) => lane.end.at(-1)));
    [this.from, this.to] = [0, this.end];
    this.selected = null; // a place: the lane, and the number of the event in it
    this.canvas = element("canvas", { "aria-hidden": "true" });
    this.paper = this.canvas.getContext("2d");
    this.controls = this.makeControls();
    this.listen();
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
    this.area.replaceChildren(this.controls, this.legend(), this.canvas, stage.beside);
    this.draw();
  }

  legend() {
    const items = this.trace.names.map((name, at) => {
      const square = element("i");
      square.style.background = `var(--c-${this.trace.colors[at].slice(1)})`;
      return element("li", {}, square, name);
    });
    return element("ul", { class: "legend" }, ...items);
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
    this.colours = { text: value("text"), quiet: value("quiet"), grid: value("grid"), paper: value("paper"), line: value("line") };
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
    this.reset.disabled = this.isWhole;
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
    this.selected = place;
    const span = this.to - this.from;
    const isNarrow = (length / span) * this.width < NAMED;
    const wanted = isNarrow ? (length * this.width) / (3 * NAMED) : Math.max(span, length * 1.2);
    if (isNarrow || begin < this.from || begin + length > this.to) this.show(begin + length / 2 - wanted / 2, wanted);
    this.soon();
  }

  // ---- mouse -------------------------------------------------------------------------------------------------------------

  listen() {
    const { canvas } = this;
    canvas.addEventListener("wheel", (event) => this.onWheel(event), { passive: false });
    canvas.addEventListener("pointerdown", (event) => {
      this.drag = { x: event.clientX, isMoved: false };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => this.onMove(event));
    canvas.addEventListener("pointerup", (event) => {
      const isClick = this.drag && !this.drag.isMoved;
      this.drag = null;
      canvas.classList.remove("held");
      if (isClick) this.act(this.placeUnder(event));
    });
    canvas.addEventListener("pointercancel", () => { this.drag = null; });
    canvas.addEventListener("pointerleave", () => this.stage.beside.classList.remove("shown"));
    canvas.addEventListener("dblclick", () => this.whole());
    this.area.addEventListener("keydown", (event) => this.onKey(event));
    this.area.addEventListener("blur", () => this.stage.beside.classList.remove("shown"));
  }

  // A wheel that would zoom out of the whole scrolls the page.
  onWheel(event) {
    if (this.isWhole && event.deltaY >= 0 && !event.deltaX) return;
    event.preventDefault();
    const x = event.clientX - this.canvas.getBoundingClientRect().left;
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.pan(event.deltaX);
    else this.zoom(Math.exp(Math.max(-200, Math.min(200, event.deltaY)) * 0.004), x);
  }

  onMove(event) {
    if (this.drag) {
      const moved = this.drag.x - event.clientX;
      if (!this.drag.isMoved && Math.abs(moved) < CLOSE) return;
      this.drag = { x: event.clientX, isMoved: true };
      this.canvas.classList.add("held");
      this.stage.beside.classList.remove("shown");
      this.pan(moved);
      return;
    }
    const place = this.placeUnder(event);
    if (place) showBeside(this.stage, this.words(place), event.clientX, event.clientY);
    else this.stage.beside.classList.remove("shown");
  }

  placeUnder(event) {
    const { left, top } = this.canvas.getBoundingClientRect();
    const lane = Math.floor((event.clientY - top) / LANE), x = event.clientX - left;
    if (!this.lanes[lane]) return null;
    const { begin, rows } = this.lanes[lane], found = firstEndingAfter(this.lanes[lane], this.time(x - CLOSE));
    return found < rows.length && begin[found] <= this.time(x + CLOSE) ? { lane, event: found } : null;
  }

  rowOf({ lane, event }) { return this.lanes[lane].rows[event]; }

  words(place) {
    const row = this.rowOf(place);
    const [event, name, events, iterations, span, busy, kind, phase, source] = [
      "event", "name", "events", "iterations", "span_s", "busy_s", "kind", "phase", "source",
    ].map((column) => textAt(columnOf(this.table, column), row));
    const { begin, end } = this.lanes[place.lane], from = begin[place.event], to = end[place.event];
    const title = { wait: `waits for ${name}`, iterations: `${iterations} iterations of ${name}` }[event]
      ?? (events === "1" ? name : `${events} events, the longest ${name}`);
    const length = span === busy ? span : `${span}, busy ${busy}`;
    return [title, `${length}, from ${timeText(from, to - from)} to ${timeText(to, to - from)}`, [kind, phase].filter(Boolean).join(", "), source].filter(Boolean).join("\n");
  }

  // A click leads to the instruction, or to the row if the page has no instructions.
  act(place) {
    if (!place) return;
    this.selected = place;
    this.soon();
    const row = this.rowOf(place), line = valueAt(columnOf(this.table, "line"), row);
    location.hash = toInstruction(this.view, this.nameOf(row), { line }) || `#${prefix(this.view)}table/timeline/${row}`;
  }

  // ---- keys --------------------------------------------------------------------------------------------------------------

  onKey(event) {
    if (event.target !== this.area) return;
    const actions = {
      ArrowRight: () => this.step(1), ArrowLeft: () => this.step(-1), ArrowUp: () => this.change(-1), ArrowDown: () => this.change(1),
      "+": () => this.zoom(0.5), "-": () => this.zoom(2), Home: () => this.whole(), Enter: () => this.act(this.selected),
    };
    if (!actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
  }

  // The next event of the stream; the first step is to the first event in sight.
  step(by) {
    const { lane, event } = this.selected ?? { lane: this.lanes.length - 1, event: null };
    const next = event === null ? firstEndingAfter(this.lanes[lane], this.from) : event + by;
    this.tell({ lane, event: Math.max(0, Math.min(this.lanes[lane].rows.length - 1, next)) });
  }

  // The event of the stream above or below at the same time.
  change(by) {
    if (!this.selected) { this.step(0); return; }
    const lane = Math.max(0, Math.min(this.lanes.length - 1, this.selected.lane + by));
    const time = this.lanes[this.selected.lane].begin[this.selected.event];
    this.tell({ lane, event: Math.min(this.lanes[lane].rows.length - 1, firstEndingAfter(this.lanes[lane], time)) });
  }

  tell(place) {
    this.lead(place);
    const words = this.words(place), { left, top } = this.canvas.getBoundingClientRect();
    const middle = this.x((this.lanes[place.lane].begin[place.event] + this.lanes[place.lane].end[place.event]) / 2);
    showBeside(this.stage, words, left + middle, top + place.lane * LANE + BOX_TOP + BOX);
    say(words.replaceAll("\n", ", "));
  }

  // ---- controls ----------------------------------------------------------------------------------------------------------

  makeControls() {
    const button = (words, label, action) => {
      const made = element("button", { type: "button", "aria-label": label }, words);
      made.addEventListener("click", action);
      return made;
    };
    const field = element("input", { type: "search", placeholder: "Find an instruction", "aria-label": "Find an instruction on the timeline" });
    const said = element("span", { class: "rows" });
    field.addEventListener("input", () => this.find(field.value, said, 0));
    field.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.find(field.value, said, event.shiftKey ? -1 : 1);
    });
    this.reset = button("Whole step", "Show the whole step", () => this.whole());
    this.reset.disabled = true;
    const zooms = [button("+", "Zoom in", () => this.zoom(0.5)), button("−", "Zoom out", () => this.zoom(2)), this.reset];
    return element("div", { class: "controls" }, field, said, ...zooms);
  }

  // Lead to an event whose name has the text: the first one, or one further on of those that were found.
  find(text, said, by) {
    const wanted = text.trim().toLowerCase();
    if (wanted !== this.wanted) this.found = wanted ? this.placesOf(wanted) : [];
    this.at = wanted === this.wanted ? (this.at + by + this.found.length) % this.found.length : 0;
    this.wanted = wanted;
    said.textContent = !wanted ? "" : this.found.length ? `${this.at + 1} of ${this.found.length}, Enter: next` : "not on the timeline";
    if (this.found.length) this.lead(this.found[this.at]);
    else { this.selected = null; this.soon(); }
  }

  // All events with the text in their names, in the order of time; an equal name comes first.
  placesOf(wanted) {
    const places = this.lanes.flatMap((lane, number) =>
      lane.rows.flatMap((row, event) => (this.nameOf(row).toLowerCase().includes(wanted) ? [{ lane: number, event }] : [])));
    const isOther = (place) => Number(this.nameOf(this.rowOf(place)).toLowerCase() !== wanted);
    const begin = (place) => this.lanes[place.lane].begin[place.event];
    return places.sort((one, other) => isOther(one) - isOther(other) || begin(one) - begin(other));
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
