"""An extension of Model Explorer: `model-explorer --extensions=hlo_inspect_explorer dump.txt`, which loads `main`."""
