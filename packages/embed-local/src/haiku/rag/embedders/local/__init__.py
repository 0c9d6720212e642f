"""Embedders that run in process: `local`, whose model comes with the package, and `onnx`, a model in a folder."""
