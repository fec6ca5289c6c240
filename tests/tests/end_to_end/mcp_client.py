"""Talks to the MCP server with the MCP project's own client: handshake, tools, calls."""

import asyncio
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


def plain(answer) -> dict:
    """An answer by the protocol's own names, whatever the client's version calls them."""
    return answer.model_dump(by_alias=True, mode="json", exclude_none=True)


async def main(program: str, state_dir: str) -> None:
    server = StdioServerParameters(command=program, args=["mcp", "--state-dir", state_dir])
    async with stdio_client(server) as (read, write):
        async with ClientSession(read, write) as session:
            await session.initialize()
            listed = plain(await session.list_tools())["tools"]
            tools = {tool["name"]: tool["annotations"] for tool in listed}
            assert len(tools) == 6, sorted(tools)
            assert tools["session_status"]["readOnlyHint"] is True
            assert tools["sessions_send"]["readOnlyHint"] is False
            target = {"sessionKey": "agent:main:t"}
            # The client holds what is structured against the tool's own schema.
            since = {**target, "changesSince": 0}
            status = plain(await session.call_tool("session_status", since))
            assert not status.get("isError"), status
            assert status["structuredContent"]["stateVersion"] == 1, status
            events = status["structuredContent"]["stateChanges"]["events"]
            assert [event["kind"] for event in events] == ["goal_changed"], events
            sessions = plain(await session.call_tool("sessions_list", {}))
            assert not sessions.get("isError"), sessions
            refused = plain(await session.call_tool("session_watch", target))
            assert refused["isError"], refused
            assert "CLAUDE_CODE_SESSION_ID" in refused["content"][0]["text"], refused
    print("well")


asyncio.run(main(sys.argv[1], sys.argv[2]))
