"""What everyday commands do, seen from outside: a sample folder, placeholders filled in, and a run under a trace."""
