// Inputs: files and folders that are dropped or chosen, pasted text, and examples.

const entriesOf = (files) => [...files].map((file) => ({ path: file.webkitRelativePath || file.name, file }));

function readAll(entries) {
  if (entries.length) read(entries);
  else trouble("Nothing to read: the folder has no files.");
}

$("choose").addEventListener("click", () => $("files").click());
$("choose-folder").addEventListener("click", () => $("folder").click());
for (const name of ["files", "folder"]) {
  $(name).addEventListener("change", ({ target }) => {
    readAll(entriesOf(target.files));
    target.value = ""; // so that the same file can be chosen again
  });
}

// -- dropped files ---------------------------------------------------------------------------------------------------

let inside = 0; // elements that the dragged files are over
document.addEventListener("dragenter", (event) => { event.preventDefault(); inside += 1; $("drop").classList.add("over"); });
document.addEventListener("dragleave", () => { inside -= 1; if (!inside) $("drop").classList.remove("over"); });
document.addEventListener("dragover", (event) => event.preventDefault());
document.addEventListener("drop", async (event) => {
  event.preventDefault();
  inside = 0;
  $("drop").classList.remove("over");
  const text = event.dataTransfer.getData("text/plain");
  const dropped = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  const entries = (await Promise.all(dropped.map(filesBelow))).flat();
  if (!entries.length && text) readText(text);
  else readAll(entries);
});

// All files of a dropped file or folder; a reader gives the entries of a folder in parts.
async function filesBelow(entry) {
  if (entry.isFile) {
    const file = await new Promise((resolve, reject) => entry.file(resolve, reject));
    return [{ path: entry.fullPath.replace(/^\//, ""), file }];
  }
  const reader = entry.createReader();
  const entries = [];
  for (;;) {
    const part = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (!part.length) break;
    entries.push(...part);
  }
  return (await Promise.all(entries.map(filesBelow))).flat();
}

// -- pasted text -----------------------------------------------------------------------------------------------------

$("paste").addEventListener("click", () => {
  const isOpen = $("pasting").hidden;
  $("pasting").hidden = !isOpen;
  $("paste").setAttribute("aria-expanded", String(isOpen));
  if (isOpen) $("pasted").focus();
});
$("pasting").addEventListener("submit", (event) => {
  event.preventDefault();
  readText($("pasted").value);
});
document.addEventListener("paste", (event) => {
  if (event.target.matches?.("input, textarea")) return;
  const files = [...event.clipboardData.files];
  if (files.length) readAll(entriesOf(files));
  else if (event.clipboardData.getData("text/plain").trim()) readText(event.clipboardData.getData("text/plain"));
});

const readText = (text) => read([{ path: "pasted.txt", file: new File([text], "pasted.txt") }]);

// -- examples --------------------------------------------------------------------------------------------------------

for (const { file, title, profile } of settings.examples) {
  const button = element("button", { type: "button", class: "link" }, title);
  button.addEventListener("click", async () => {
    const answer = await fetch(`${FOLDER}${file}`);
    if (!answer.ok) return trouble(`${file} cannot be loaded (${answer.status})`);
    $("profile").value = profile;
    return read([{ path: file.split("/").pop(), file: new File([await answer.blob()], "example") }]);
  });
  $("examples").append(button, " ");
}
