"""The command `haiku-rag eval`."""
