"""Rendering of finished results: terminal text, JSON, Markdown, HTML, figures and traces."""
