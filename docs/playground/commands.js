// The command line: answers as a terminal prints them, completions, and the lines before.

const MOST_SHOWN = 2_000_000; // characters of one answer
const asked = [];
let place = 0; // in `asked`, while the arrow keys go through it

// Columns of the terminal: as many characters as the panel has room for.
function columns() {
  const probe = element("span", { class: "probe" }, "0".repeat(100));
  const panel = $("answers");
  panel.append(probe);
  const width = probe.getBoundingClientRect().width / 100;
  probe.remove();
  return Math.max(40, Math.min(200, Math.floor((panel.clientWidth - 32) / (width || 8))));
}

function command(line) {
  const answer = element("pre", { class: "answer" });
  let shown = 0;
  let all = [];
  const entry = element("div", {}, element("p", { class: "asked" }, `$ hlo-inspect ${line}`), answer);
  const end = (...nodes) => {
    const rest = shown - MOST_SHOWN;
    if (rest > 0) {
      const whole = new TextEncoder().encode(all.join(""));
      entry.append(element("p", {}, `${rest.toLocaleString("en")} more characters: `, download("answer.txt", whole, "Download the answer")));
    }
    all = [];
    entry.append(...nodes);
    $("terminal").scrollTop = entry.offsetTop;
  };
  $("terminal").append(entry);
  return {
    line: () => line,
    output(stream, text) {
      all.push(text);
      const part = text.slice(0, Math.max(0, MOST_SHOWN - shown));
      shown += text.length;
      if (part) answer.append(stream === "error" ? element("span", { class: "error" }, part) : part);
    },
    done(status, files) {
      const nodes = files.map(({ name, data }) => element("p", {}, "wrote ", download(name, data)));
      if (status) nodes.push(element("p", { class: "status" }, `exit status ${status}`));
      end(...nodes);
    },
    ended() { end(element("p", { class: "status" }, "stopped")); },
  };
}

$("prompt").addEventListener("submit", (event) => {
  event.preventDefault();
  const line = $("line").value.trim().replace(/^hlo-inspect\s+/, "");
  closeOffers();
  if (!line) return;
  asked.push(line);
  place = asked.length;
  $("line").value = "";
  trouble("");
  enqueue(command(line));
});

// -- completions -----------------------------------------------------------------------------------------------------

let offered = []; // lines
let active = -1; // the one that the arrow keys reached
let asking = 0;

$("line").addEventListener("input", () => {
  clearTimeout(asking);
  asking = setTimeout(() => {
    if (isReady && current === null) worker.postMessage({ kind: "complete", line: $("line").value });
  }, 120);
});

function offer(line, items) {
  if (line !== $("line").value || document.activeElement !== $("line")) return;
  offered = items.map((item) => item.line).filter((text) => text !== line);
  active = -1;
  const rows = items.filter((item) => item.line !== line).map((item, at) => {
    const row = element("li", { role: "option", id: `offer-${at}`, "aria-selected": "false" }, element("b", {}, lastWord(item.line)), " ", item.help);
    row.addEventListener("mousedown", (event) => { event.preventDefault(); accept(at); });
    return row;
  });
  $("offers").replaceChildren(...rows);
  $("offers").hidden = !rows.length;
  $("line").setAttribute("aria-expanded", String(rows.length > 0));
  $("line").removeAttribute("aria-activedescendant");
}

const lastWord = (line) => line.slice(line.lastIndexOf(" ") + 1);

function closeOffers() {
  clearTimeout(asking);
  offered = [];
  active = -1;
  $("offers").hidden = true;
  $("line").setAttribute("aria-expanded", "false");
  $("line").removeAttribute("aria-activedescendant");
}

function accept(at) {
  $("line").value = offered[at] + (offered[at].endsWith("/") ? "" : " ");
  closeOffers();
  $("line").dispatchEvent(new Event("input"));
}

function move(step) {
  $(`offer-${active}`)?.setAttribute("aria-selected", "false");
  active = (active + step + offered.length) % offered.length;
  $(`offer-${active}`).setAttribute("aria-selected", "true");
  $(`offer-${active}`).scrollIntoView({ block: "nearest" });
  $("line").setAttribute("aria-activedescendant", `offer-${active}`);
}

function recall(step) {
  place = Math.max(0, Math.min(asked.length, place + step));
  $("line").value = asked[place] ?? "";
}

// Tab takes the first completion, as in a shell; without completions it goes on to the next control.
$("line").addEventListener("keydown", (event) => {
  const isOpen = offered.length > 0;
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    const step = event.key === "ArrowDown" ? 1 : -1;
    if (isOpen) move(active < 0 && step < 0 ? 0 : step);
    else recall(step);
  } else if (event.key === "Tab" && isOpen && !event.shiftKey) {
    accept(Math.max(active, 0));
  } else if (event.key === "Enter" && active >= 0) {
    accept(active);
  } else if (event.key === "Escape" && isOpen) {
    closeOffers();
  } else {
    return;
  }
  event.preventDefault();
});
$("line").addEventListener("blur", closeOffers);
