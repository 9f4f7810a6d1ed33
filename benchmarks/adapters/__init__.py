"""One module a peer, each on its public path. A function that is not there means that the peer has no such thing.

| name | what it gives |
| --- | --- |
| `NAME`, `PACKAGES` | how the peer is called, and the distributions whose versions are told |
| `IMPORTS` | label -> the statement that a user of tools (or of agents) types |
| `calls(function, kind)` | label -> an async function from the arguments' JSON text to what the model is told |
| `loop(function, turns, mark)` | an async function that runs an agent so many turns; its model calls `mark` at each |
| `stream()` | label -> a function that makes a reader: called with a chunk, it gives the value so far |
| `define(function)`, `use(tool)` | declares a tool; schema and first validation |
| `answers()` | "chat" or "messages" -> label -> a function from frames, and `step` to call at each, to calls |
| `typed()` | "whole" or "streamed" -> label -> an async function to the value, and the `Served` that it asks |
| `text()` | label -> a `Reader` (measures/text.py) of texts with calls in them |
| `bodies()` | label -> a function from a number of turns to a function that makes the body of the next request |
| `guarded(function)` | row -> an async function like those of `calls`, with secrets to be masked or a log to be kept |
| `definitions(functions)` | what a model is sent: name, description and parameters of each |
| `registry(function, count)` | a `Registry` (measures/registry.py) of so many tools that are built already |

What no peer has, such as files, rules and sandboxes, is in `own`. In `first_calls/` is a program a peer, from its
import to a first answered call.
"""
