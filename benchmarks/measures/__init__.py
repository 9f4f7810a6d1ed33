"""What is measured. Each has a module here with `measure(adapter, options) -> samples`, run beside the peer.

A sample is `{"row", "path", "figures": {name: number}}`; a figure that was extrapolated stands in "guessed".
"""

from typing import NamedTuple


class Measure(NamedTuple):
    """How a measure is called, what is told of it, and how many rounds it takes at most, and when it is quick.

    `alone` is one of what no peer has: it is run beside toolcrib only, and names plain programs in its samples.
    """

    title: str
    about: str
    rounds: int
    quick_rounds: int = 2
    alone: bool = False


MEASURES = {
    "calls": Measure(
        "One call",
        "CPU of one call, and its ratio to bare Pydantic (`validate_json`, await, `to_json`) in "
        "the same process. Flat arguments are 79 bytes; nested ones 50 models, 11 kB; a file is 12 kB of code.",
        99,
    ),
    "loop": Measure(
        "One turn of the agent loop",
        "CPU ms between two requests to a scripted model that calls one flat async tool a turn, in "
        "a run of 210 turns: the median of turns 2 to 21 and of turns 190 to 209. Growth is the "
        "second by the first.",
        7,
    ),
    "bodies": Measure(
        "The body of a request",
        "CPU ms to build the body of the next request from a conversation of so many turns, with a call and its "
        "result each, as an agent does each turn.",
        5,
    ),
    "guarded": Measure(
        "With secrets and with an audit log",
        "One flat async call in a toolbox that masks one secret, and in one that notes each call in a log on the disk "
        "before it runs: µs on the clock, which depend on the disk, and of CPU. The floor appends a line of 700 bytes "
        "and waits for the disk.",
        5,
    ),
    "runs": Measure(
        "Many runs at once",
        "So many agents, each with a run of 5 turns with a call each, at once in one loop, made and run: CPU ms a "
        "run. Streams are the same runs with their events read as they come.",
        5,
        quick_rounds=1,
    ),
    "stream": Measure(
        "Partial arguments",
        "Arguments in 16-byte chunks, the value so far asked for after each; CPU of the whole, and "
        'its ratio to appending the chunks to a bytearray. "write" is one long text, "edits" many '
        "small objects. `~` is extrapolated: stopped at the time limit, the rest reckoned with the "
        "square of the length.",
        3,
    ),
    "answers": Measure(
        "A streamed answer with calls",
        "From the bytes of server-sent events, an event at a time, to complete calls: CPU ms of one answer, and "
        'its ratio to `json.loads` of each event\'s data and joining the strings, in the same process. "chat" is '
        "OpenAI's Chat Completions, \"messages\" Anthropic's; 4 calls of 60 to 330 bytes after some text, in deltas "
        "of 5 characters, and 100 calls of 1 kB in deltas of 16. All but the rows that say otherwise go through "
        "the provider's SDK and its HTTP client, with a transport that plays the bytes from memory. `~` is "
        "extrapolated as above.",
        3,
    ),
    "typed": Measure(
        "A typed answer",
        "From a text to a validated model with 40 nested lines (2 kB): CPU ms of one answer over the openai SDK with a "
        "transport that plays the bytes from memory, its ratio to `json.loads` of the same bytes, and the bytes of the "
        "request. Streamed answers come in deltas of 8 characters, with the value so far asked for at each. toolcrib "
        "reads whole answers from a stream too.",
        3,
    ),
    "text": Measure(
        "Calls that are written as text",
        "CPU µs a kilobyte of text, at three lengths, and how that grows from the first to the last: 1 is linear. "
        'Pieces are 16 characters. "many calls" are calls of 1 kB one after the other, "one call" is a single one '
        "of the whole length. `~` is extrapolated as above.",
        3,
    ),
    "imports": Measure(
        "Import",
        "CPU ms of the statement alone in a fresh process with compiled bytecode, and its ratio to "
        "`import pydantic` in the same environment, each the median of interleaved processes.",
        3,
        quick_rounds=1,
    ),
    "starts": Measure(
        "Start of a process",
        "CPU ms of whole processes with what they start, bytecode compiled: the least, and the median. A first "
        "answered call is: import, declare an async function of two numbers a tool, call it with JSON. The commands of "
        "the command line run without a terminal; `run` has tried the sandbox before, on this machine and day.",
        2,
        quick_rounds=1,
    ),
    "define": Measure(
        "Defining a tool",
        "CPU µs for each of many distinct documented functions of five parameters: declaring it a "
        "tool, then its schema and a first validation. The floor is a Pydantic model of the "
        "signature, its schema and a first validation. Peers that make schema and validator at "
        "once have little left for the first use: compare both together.",
        5,
    ),
    "tokens": Measure(
        "Definitions of ten tools",
        "Name, description and parameters of ten tools with nested models as compact JSON, in "
        "o200k tokens; and how many descriptions and constraints of the source are still in it.",
        1,
    ),
    "concurrency": Measure(
        "Ten thousand calls at once",
        "10,000 concurrent calls of a tool that sleeps 10 ms, in a fresh process: CPU seconds of "
        "all threads, its ratio to the floor in another fresh process, and how far the peak of "
        "resident memory rose. The garbage collector rests meanwhile, for all alike, but "
        "in the rows that say otherwise.",
        3,
        quick_rounds=1,
    ),
    "registry": Measure(
        "A registry of 10,000 tools",
        "Tools that are built already are added one after the other, looked up by name, and listed "
        "with their definitions for a model, twice. Growth compares 10,000 tools with 100.",
        1,
    ),
    "files": Measure(
        "Files: read, edit, search, open",
        "A call of a file tool along its whole path, beside plain Python that does the bare work and checks nothing, "
        "and beside ripgrep: CPU ms with what is started, and on the clock. The tree has 6,800 files of 60 lines. To "
        "open: CPU µs from a path to a descriptor, 1, 3 and 8 folders down.",
        2,
        alone=True,
    ),
    "snapshots": Measure(
        "A folder of 10,000 files stored and put back",
        "Checkpoints beside git on the same files: CPU ms with what is started, and on the clock. git starts a "
        "process for each; a checkpoint that puts files back stores the present state before and after.",
        1,
        alone=True,
    ),
    "decisions": Measure(
        "A decision by rules",
        "CPU µs in which a policy of 2, 20 and 200 rules decides a call: by the rules alone, and with what the call "
        "reaches worked out anew (paths looked up, the command parsed). No peer decides by rules.",
        3,
        alone=True,
    ),
    "commands": Measure(
        "A command in a sandbox",
        "ms on the clock from before the launch of `/bin/true` to after its end, by back end; and of a call of the "
        "shell tool that runs `true` where rules deny paths of a workspace of 10,000 files.",
        1,
        alone=True,
    ),
    "masking": Measure(
        "Masking of secrets",
        "MB of text a second of CPU, by the number of secrets and the way of looking for them. More is better.",
        1,
        alone=True,
    ),
    "weight": Measure(
        "What is installed with it",
        "Distributions besides itself that its installation brings; megabytes of all with compiled bytecode.",
        1,
    ),
}
