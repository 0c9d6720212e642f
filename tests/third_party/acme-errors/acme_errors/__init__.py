"""An error type with an exit status of its own."""
