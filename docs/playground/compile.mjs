// Compiles the Python files of a folder to bytecode with the Pyodide of the page: node compile.mjs PYODIDE FOLDER

import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [pyodideFolder, folder] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(join(pyodideFolder, "pyodide.mjs")));
const python = await loadPyodide({ indexURL: pyodideFolder });
python.FS.mkdirTree("/sources");
python.mountNodeFS("/sources", folder);
python.runPython(`
from pathlib import Path
from py_compile import PycInvalidationMode, compile

root = Path("/sources")
for path in sorted(root.rglob("*.py")):
    name = path.relative_to(root).as_posix()
    compile(path, path.with_suffix(".pyc"), name, doraise=True, invalidation_mode=PycInvalidationMode.UNCHECKED_HASH)
    path.unlink()
`);
