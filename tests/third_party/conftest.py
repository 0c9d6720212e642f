"""These are other people's distributions: their tests run where they are installed, started by `test_third_party`."""

collect_ignore_glob = ["acme-*"]
