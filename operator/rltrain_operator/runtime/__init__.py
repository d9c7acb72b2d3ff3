"""The operator's edge: the only place that touches kopf, HTTP and clocks."""
