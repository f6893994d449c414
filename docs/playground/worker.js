// Runs hlo-inspect: a module worker, made from a blob so that the policy of the page binds it too.
//
// Messages to it: start, open, run, complete. It answers with ready, progress, output, opened, done, completions or failed.

let python, session, base;
const post = (message, transfer = []) => self.postMessage(message, transfer);
const progress = (words, share) => post({ kind: "progress", words, share });

async function start({ folder, pyodide }) {
  base = folder;
  const library = pyodide || `${folder}pyodide/`;
  progress("loading Python", 0.1);
  const files = unpacked(`${folder}packages.bin`); // meanwhile
  const { loadPyodide } = await import(`${library}pyodide.mjs`);
  python = await loadPyodide({
    indexURL: library,
    stdLibURL: `${folder}pyodide/python_stdlib.zip`,
    lockFileURL: `${folder}pyodide/pyodide-lock.json`,
    packageBaseUrl: library,
    env: { HOME: "/home", PYTHONHASHSEED: "0", TERM: "dumb" },
  });
  progress("loading hlo-inspect", 0.7);
  for (const [name, bytes] of await files) {
    python.FS.mkdirTree(name.slice(0, name.lastIndexOf("/")));
    python.FS.writeFile(name, bytes, { canOwn: true });
  }
  python.runPython(`import sys; sys.path.insert(0, "${PACKAGES}")`);
  python.setStdout(stream("out"));
  python.setStderr(stream("error"));
  python.setStdin({ stdin: () => null });
  session = python.pyimport("playground_session");
  session.start(() => addNumpy(library));
  post({ kind: "ready" });
}

// The files of an archive: a line of JSON with their names and sizes, then their bytes.
const PACKAGES = "/packages";
async function unpacked(address) {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(`${address} cannot be loaded (${answer.status})`);
  const whole = await new Response(answer.body.pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
  let at = new Uint8Array(whole).indexOf(10) + 1;
  const index = JSON.parse(new TextDecoder().decode(new Uint8Array(whole, 0, at)));
  return index.map(([name, size]) => {
    at += size;
    return [`${PACKAGES}/${name}`, new Uint8Array(whole, at - size, size)];
  });
}

// Python writes bytes; a character may begin in one piece and end in the next.
function stream(name) {
  const decoder = new TextDecoder();
  const write = (bytes) => {
    post({ kind: "output", stream: name, text: decoder.decode(bytes, { stream: true }) });
    return bytes.length;
  };
  return { write, isatty: false };
}

// Python waits for the import of numpy, so that it is loaded without a promise.
function addNumpy(library) {
  const lock = JSON.parse(loadedNow(`${base}pyodide/pyodide-lock.json`, "text"));
  const entry = lock.packages.numpy;
  if (entry === undefined) return false;
  progress("loading numpy", -1);
  python.unpackArchive(loadedNow(`${library}${entry.file_name}`, "arraybuffer"), "wheel");
  return true;
}

function loadedNow(address, type) {
  const request = new XMLHttpRequest();
  request.open("GET", address, false);
  request.responseType = type;
  request.send();
  if (request.status !== 200) throw new Error(`${address} cannot be loaded (${request.status})`);
  return request.response;
}

// Files stay where they are: a mount reads their pieces when Python asks for them.
const MOUNT = "/opened";
let isMounted = false;
function open({ files }) {
  const { FS } = python;
  if (isMounted) FS.unmount(MOUNT);
  else FS.mkdirTree(MOUNT);
  FS.mount(FS.filesystems.WORKERFS, { blobs: files.map(({ file }, at) => ({ name: String(at), data: file })) }, MOUNT);
  isMounted = true;
  const entries = python.toPy(files.map(({ path }, at) => [path, `${MOUNT}/${at}`]));
  post({ kind: "opened", ...JSON.parse(session.open_files(entries)) });
  entries.destroy();
}

function run({ line, columns }) {
  const { status, files } = JSON.parse(session.run_line(line, columns, progress));
  const written = files.map((name) => ({ name, data: python.FS.readFile(`/dumps/${name}`) }));
  post({ kind: "done", line, status, files: written }, written.map(({ data }) => data.buffer));
}

function complete({ line }) {
  post({ kind: "completions", line, items: JSON.parse(session.complete(line)) });
}

const ANSWERS = { start, open, run, complete };
self.addEventListener("message", async ({ data }) => {
  try {
    await ANSWERS[data.kind](data);
  } catch (error) {
    post({ kind: "failed", message: String(error?.message ?? error) });
  }
});
