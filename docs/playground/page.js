// The page: one worker that runs hlo-inspect, one run at a time, and the two panels of its answers.

const settings = JSON.parse(document.getElementById("settings").textContent);
const $ = (id) => document.getElementById(id);
const FOLDER = new URL(".", location.href).href;

const element = (name, attributes = {}, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
};

// The policy of the document names its origin. This one narrows that to the folder, whose address no build knows.
function narrowPolicy() {
  const folder = FOLDER.replace(/[;,]/g, encodeURIComponent);
  const sources = `${folder} ${settings.pyodide}`;
  const policy = `connect-src ${sources}; script-src ${sources} 'wasm-unsafe-eval'; worker-src blob:; frame-src ${folder}`;
  document.head.append(element("meta", { "http-equiv": "Content-Security-Policy", content: policy }));
}

// -- the worker ------------------------------------------------------------------------------------------------------

let worker = null;
let isStarting = false; // until its code is there
let isReady = false;
let isOpening = false; // the worker has a dump, but not yet said what a command calls it
let dump = null; // the open inputs: { files, words }
let current = null; // the run that the worker works on
const waiting = []; // runs after it

async function startWorker() {
  if (isStarting) return;
  isStarting = true;
  show("loading Python", 0);
  try {
    const answer = await fetch(`${FOLDER}worker.js`);
    runWorker(await answer.blob());
  } catch (error) {
    RECEIVED.failed({ message: error.message });
  } finally {
    isStarting = false;
  }
}

function runWorker(script) {
  const started = new Worker(URL.createObjectURL(new Blob([script], { type: "text/javascript" })), { type: "module" });
  started.addEventListener("message", ({ data }) => { if (started === worker) RECEIVED[data.kind](data); });
  started.addEventListener("error", (event) => { if (started === worker) RECEIVED.failed({ message: event.message }); });
  worker = started;
  worker.postMessage({ kind: "start", folder: FOLDER, pyodide: settings.pyodide });
}

const RECEIVED = {
  ready() {
    isReady = true;
    document.documentElement.dataset.ready = "true";
    if (dump !== null) openInWorker();
    else rest();
  },
  progress({ words, share }) { show(words, share); },
  opened({ words, error }) {
    isOpening = false;
    dump.words = words;
    $("compare").hidden = words.length !== 2 || Boolean(error);
    if (error) {
      dump = null;
      forget();
      trouble(error);
      rest();
    } else {
      next();
    }
  },
  output({ stream, text }) { current?.output(stream, text); },
  done({ status, files }) {
    const run = current;
    current = null;
    run.done(status, files);
    next();
  },
  completions({ line, items }) { offer(line, items); },
  failed({ message }) {
    const wasReady = isReady;
    endWorker();
    trouble(wasReady ? `hlo-inspect ended unexpectedly: ${message}` : `Python could not start in this browser: ${message}`);
    if (wasReady) startWorker();
  },
};

// End the worker in the middle of its work: nothing else stops it.
function endWorker() {
  worker?.terminate();
  worker = null;
  isReady = isOpening = false;
  const run = current;
  current = null;
  run?.ended();
  forget();
  rest();
}

function forget() {
  for (const run of waiting.splice(0)) run.ended();
}

function openInWorker() {
  isOpening = true;
  show("opening", -1);
  worker.postMessage({ kind: "open", files: dump.files });
}

// A run: `line()` makes the command line when its turn comes.
function enqueue(...runs) {
  waiting.push(...runs);
  if (isReady && current === null) next();
}

function next() {
  if (current !== null || isOpening) return;
  current = waiting.shift() ?? null;
  if (current === null) {
    rest();
    return;
  }
  const line = current.line();
  show(`running ${line.split(" ")[0]}`, -1);
  worker.postMessage({ kind: "run", line, columns: columns() });
}

// -- progress --------------------------------------------------------------------------------------------------------

// A share below 0 is unknown: the seconds so far stand in its place, which cost less than a bar that moves.
const shown = { words: "", since: 0, ticking: 0 };
function show(words, share) {
  $("work").dataset.busy = "true";
  $("bar").hidden = share < 0;
  $("bar").value = Math.max(share, 0);
  $("stop").hidden = !isReady;
  if (shown.words === words) return;
  Object.assign(shown, { words, since: Date.now() });
  $("doing").textContent = words;
  $("seconds").textContent = "";
  clearInterval(shown.ticking);
  shown.ticking = setInterval(() => { $("seconds").textContent = `${Math.round((Date.now() - shown.since) / 1000)} s`; }, 1000);
}

function rest() {
  delete $("work").dataset.busy;
  clearInterval(shown.ticking);
  shown.words = $("doing").textContent = $("seconds").textContent = "";
  $("stop").hidden = true;
}

function trouble(text) {
  $("trouble").textContent = text;
  $("trouble").hidden = !text;
}

$("stop").addEventListener("click", () => {
  endWorker();
  trouble("Stopped.");
  startWorker();
});

// -- the report ------------------------------------------------------------------------------------------------------

// What a person wrote in a command line, as the shell reads it.
const quoted = (word) => (/^[\w.,/:=@%+-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);
function inputs() {
  const profile = $("profile").value;
  return [...dump.words, ...(profile ? ["--profile", profile] : [])].map(quoted).join(" ");
}

function read(files) {
  if (isReady && (current !== null || isOpening)) endWorker();
  forget();
  dump = { files, words: [] };
  document.documentElement.dataset.open = "true";
  $("opened").textContent = files.length === 1 ? files[0].path : `${files.length} files`;
  $("first").textContent = "";
  for (const name of ["nothing", "first", "compare"]) $(name).hidden = true;
  clearReport();
  trouble("");
  choose("report");
  waiting.push(firstLines(), wholeReport());
  if (worker === null) startWorker();
  else if (isReady) openInWorker();
}

function clearReport() {
  document.querySelector("iframe")?.remove();
  $("downloads").replaceChildren();
  $("downloads").hidden = true;
  delete document.documentElement.dataset.report;
}

$("profile").addEventListener("change", () => { if (dump !== null) read(dump.files); });
$("compare").addEventListener("click", () => enqueue(wholeReport("--diff ")));

// The summary, as the terminal shows it: there long before the report.
function firstLines() {
  return {
    line: () => `summary ${inputs()}`,
    output(stream, text) {
      if (stream === "error") trouble(($("trouble").textContent + text).trimEnd());
      else $("first").append(text);
      $("first").hidden = !$("first").textContent;
    },
    done() { document.documentElement.dataset.first = String($("first").textContent.length); },
    ended() {},
  };
}

function wholeReport(options = "") {
  let errors = "";
  return {
    line: () => `report ${options}${inputs()} -q -o report.html`,
    output(_, text) { errors += text; },
    done(_, files) {
      if (errors.trim() && !$("trouble").textContent.includes(errors.trim())) trouble(errors.trim());
      const page = files.find(({ name }) => name === "report.html");
      if (page !== undefined) showReport(page.data);
    },
    ended() {},
  };
}

// A sandboxed frame, whose own policy allows no loading, gets the page.
function showReport(data) {
  const frame = element("iframe", { title: "Report", sandbox: "allow-scripts allow-downloads allow-modals", allow: "clipboard-write *", src: "report.html" });
  const text = new TextDecoder().decode(data);
  const give = ({ source }) => {
    if (source !== frame.contentWindow) return;
    window.removeEventListener("message", give);
    frame.contentWindow.postMessage(text, "*");
    document.documentElement.dataset.report = "true";
  };
  window.addEventListener("message", give);
  clearReport();
  $("first").hidden = true;
  $("downloads").append(download("report.html", data, "Download the report"));
  $("downloads").hidden = false;
  $("report").append(frame);
}

// A link that saves bytes which a command wrote.
function download(name, data, words = name) {
  const address = URL.createObjectURL(new Blob([data], { type: "application/octet-stream" }));
  return element("a", { href: address, download: name.split("/").pop(), class: "button" }, words);
}

// -- panels ----------------------------------------------------------------------------------------------------------

const PANELS = ["report", "commands"];
function choose(name) {
  for (const panel of PANELS) {
    const tab = $(`tab-${panel}`);
    tab.setAttribute("aria-selected", String(panel === name));
    tab.tabIndex = panel === name ? 0 : -1;
    $(panel).hidden = panel !== name;
  }
}
for (const panel of PANELS) {
  $(`tab-${panel}`).addEventListener("click", () => choose(panel));
  $(`tab-${panel}`).addEventListener("keydown", (event) => {
    if (event.key !== "ArrowRight" && event.key !== "ArrowLeft") return;
    const other = PANELS.find((name) => name !== panel);
    choose(other);
    $(`tab-${other}`).focus();
  });
}

// -- begin -----------------------------------------------------------------------------------------------------------

// What the page needs of a browser, and what it says if that is missing.
function missing() {
  if (location.protocol === "file:") return "This page has to come from a server: python -m http.server -d FOLDER, then http://localhost:8000.";
  const needed = { WebAssembly: window.WebAssembly, Worker: window.Worker, DecompressionStream: window.DecompressionStream, BigInt64Array: window.BigInt64Array };
  const names = Object.keys(needed).filter((name) => !needed[name]);
  return names.length ? `This browser has no ${names.join(", ")}, which the page needs; newer ones have it.` : "";
}

function begin() {
  $("version").textContent = `hlo-inspect ${settings.version}`;
  for (const name of settings.profiles) $("profile").append(element("option", { value: name }, name));
  const lacking = missing();
  if (lacking) {
    trouble(lacking);
    rest();
    return;
  }
  narrowPolicy();
  startWorker();
}
window.addEventListener("DOMContentLoaded", begin);
