"""The embedded default storage engine, on LanceDB."""
