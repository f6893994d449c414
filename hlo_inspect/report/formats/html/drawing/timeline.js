// The timeline of a step: the wheel zooms, a drag pans, keys lead from event to event, and a search leads to an instruction.

const CLOSE = 4; // pixels between the mouse and a mark that is meant

DRAWERS.timeline = (stage) => {
  stage.area.timeline ??= new TimelinePicture(stage);
  stage.area.timeline.resize(stage);
  return true;
};

class TimelinePicture extends TimelineCanvas {
  constructor(stage) {
    super(stage);
    this.view = stage.view;
    this.search = new TimelineSearch(this);
    this.controls = this.makeControls();
    this.listen();
  }

  makeControls() {
    const button = (words, label, action) => {
      const made = element("button", { type: "button", "aria-label": label }, words);
      made.addEventListener("click", action);
      return made;
    };
    this.reset = button("Whole step", "Show the whole step", () => this.whole());
    this.reset.disabled = true;
    const zooms = [button("+", "Zoom in", () => this.zoom(0.5)), button("−", "Zoom out", () => this.zoom(2)), this.reset];
    return element("div", { class: "controls" }, this.search.field, this.search.said, ...zooms);
  }

  show(from, span) {
    super.show(from, span);
    this.reset.disabled = this.isWhole;
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
    this.select(place);
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
}
