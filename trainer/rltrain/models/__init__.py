"""Networks, action distributions and the encoding of spaces."""
