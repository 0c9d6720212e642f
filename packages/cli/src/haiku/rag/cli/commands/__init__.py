"""The package's own commands, one module each; a module is imported when its command is invoked."""
