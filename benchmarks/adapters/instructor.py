"""instructor: a patched OpenAI client that answers with a Pydantic model."""

from typing import Any

NAME = "instructor"
PACKAGES = ("instructor", "openai")
IMPORTS = {"agent": "import instructor; instructor.from_openai"}


def typed() -> dict[str, dict[str, Any]]:
    import instructor
    from typed_answers import TEXT, Invoice, Served

    served = Served()
    client: Any = instructor.from_openai(served.client(), mode=instructor.Mode.TOOLS)
    asked = {"model": "m", "messages": [{"role": "user", "content": TEXT}]}

    async def once() -> Any:
        return await client.chat.completions.create(response_model=Invoice, **asked)

    async def streamed() -> Any:
        last = None
        async for partial in client.chat.completions.create_partial(response_model=Invoice, **asked):
            last = partial
        return last

    return {"whole": {"create": (once, served)}, "streamed": {"create_partial": (streamed, served)}}
