"""The embedder `multilingual`: multilingual-e5-small, whose weights come with a package, run by ONNX Runtime."""
