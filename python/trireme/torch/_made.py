"""All torch operators by name, backwards too."""

MADE = {}
