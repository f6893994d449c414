// The field above a timeline that finds instructions by their names.

class TimelineSearch {
  constructor(timeline) {
    this.timeline = timeline;
    this.field = element("input", { type: "search", placeholder: "Find an instruction", "aria-label": "Find an instruction on the timeline" });
    this.said = element("span", { class: "rows", role: "status" });
    this.field.addEventListener("input", () => this.find(0));
    this.field.addEventListener("keydown", (event) => { if (event.key === "Enter") this.find(event.shiftKey ? -1 : 1); });
  }

  // Lead to an event whose name has the text: the first one, or one further on of those that were found.
  find(by) {
    const wanted = this.field.value.trim().toLowerCase(), isNew = wanted !== this.wanted;
    if (isNew) this.found = wanted ? this.placesOf(wanted) : [];
    const { length } = this.found;
    this.at = isNew || !length ? 0 : (this.at + by + length) % length;
    this.wanted = wanted;
    this.said.textContent = !wanted ? "" : length ? `${this.at + 1} of ${length}, Enter: next` : "not on the timeline";
    if (length) this.timeline.lead(this.found[this.at]);
    else this.timeline.select(null);
  }

  // All events with the text in their names, in the order of time; an equal name comes first.
  placesOf(wanted) {
    const { timeline } = this, { lanes } = timeline;
    const named = lanes.map((lane) => lane.rows.map((row) => timeline.nameOf(row).toLowerCase()));
    const places = named.flatMap((names, lane) => names.flatMap((name, event) => (name.includes(wanted) ? [{ lane, event }] : [])));
    const isOther = ({ lane, event }) => Number(named[lane][event] !== wanted);
    const begin = ({ lane, event }) => lanes[lane].begin[event];
    return places.sort((one, other) => isOther(one) - isOther(other) || begin(one) - begin(other));
  }
}
