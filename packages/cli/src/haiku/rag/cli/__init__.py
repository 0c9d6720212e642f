"""The command line: `haiku.rag.cli.app` has the group, `haiku.rag.cli.commands` a module for each command."""
