"""Converters for text, source code, Markdown, HTML and PDF, a structural chunker, and documents over HTTP."""
