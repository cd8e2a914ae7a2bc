"""A kubelet for simulated nodes: one process plays every node of a test cluster.

Pods bound to a node start, run, end and go away as a kubelet would have it, and their logs come back through the API
server. A container runs until it is deleted unless its pod's annotations, or a fault rule, say otherwise: see
behaviour.py for what can be said.
"""
