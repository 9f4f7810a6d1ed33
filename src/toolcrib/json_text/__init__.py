"""JSON as models write it: tokens, values, the shape a schema gives them, and a tolerant reader."""
