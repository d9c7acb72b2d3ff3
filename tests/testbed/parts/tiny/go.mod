module testbed/tiny

go 1.26.0
