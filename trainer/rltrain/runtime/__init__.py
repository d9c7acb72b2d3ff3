"""Where plans run: machines, workers, checkpoints, the driver's loop and its reports."""
