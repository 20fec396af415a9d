"""What several commands share: options, output, logs, watches."""
