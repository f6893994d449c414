"""Texts from logs and mails: prefixes, wrapped lines, escapes, quoted instructions. Imports `hlo/read` and what precedes it."""
