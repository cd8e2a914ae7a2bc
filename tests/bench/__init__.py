"""Benchmarks: each prints `name value unit ratio bound ok|MISSED` and ends non-zero when a stated bound is missed."""
