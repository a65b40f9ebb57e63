"""What a controller runs on: informers, queues, workers, leadership, metrics and probes.

Not here: how to speak to an API server (`kube`), and what any controller decides (`controllers`).
"""
