"""The share binder: `plimsoll bind` makes share pods run where no KAI does. Latency decides here, so it writes with
the client itself rather than by stack updates; its state is the cluster."""
