"""Inputs: files, streams, compression, dump directories, texts that are no HLO. Imports all of `hlo`, and remote files."""
