"""The command line: options, one file for each command, exit statuses.

Imports what runs a command and renders its reports. Only `__main__` imports it.
"""
