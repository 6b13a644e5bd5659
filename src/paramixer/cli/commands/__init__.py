"""The commands, one module for each; a module is imported when its command is called."""
