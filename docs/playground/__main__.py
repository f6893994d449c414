"""Build the page Try it: a static folder that runs hlo-inspect in a browser tab.

    python -m docs.playground -o site/try

Needs the extra [docs], npm and node. Browsers open the folder through a server: `python -m http.server -d site/try`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from docs.playground.build import build
from docs.playground.packages import BuildError
from docs.playground.sizes import size_lines


def main() -> None:
    """Build the folder that the command line names, and print its sizes."""
    parser = argparse.ArgumentParser(
        prog="python -m docs.playground", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FOLDER", help="folder to write or replace")
    parser.add_argument("--cdn", action="store_true", help="leave Pyodide out; visitors load it from cdn.jsdelivr.net")
    parser.add_argument("--numpy", type=Path, metavar="WHEEL", help="file of Pyodide's numpy, to put in the folder")
    parser.add_argument("--cache", type=Path, metavar="FOLDER", help="keep Pyodide and bytecode there for the next build")
    arguments = parser.parse_args()
    try:
        build(arguments.output, uses_cdn=arguments.cdn, numpy=arguments.numpy, cache=arguments.cache)
    except BuildError as error:
        sys.exit(f"docs.playground: {error}")
    print("\n".join(size_lines(arguments.output)))


if __name__ == "__main__":
    main()
