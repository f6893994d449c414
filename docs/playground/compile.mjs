// Compiles Python files to bytecode with the Pyodide of the page: node compile.mjs PYODIDE LIST
//
// LIST is a JSON file of triples: the file, where its bytecode goes, and the name that tracebacks show.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [pyodideFolder, list] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(join(pyodideFolder, "pyodide.mjs")));
const python = await loadPyodide({ indexURL: pyodideFolder });
const triples = JSON.parse(readFileSync(list, "utf8"));
python.FS.mkdirTree("/host");
python.mountNodeFS("/host", "/");
python.globals.set("triples", python.toPy(triples));
python.runPython(`
from os import replace
from py_compile import PycInvalidationMode, compile

for path, target, name in triples:
    level = 2 if name.startswith("library/") else 0  # docstrings of the library are read by nobody, ours are the help
    compile(f"/host{path}", f"/host{target}.part", name, True, level, PycInvalidationMode.UNCHECKED_HASH)
    replace(f"/host{target}.part", f"/host{target}")
`);
