"""Finding one of 500 tools by words that are not its own."""

from __future__ import annotations

import itertools

import pytest

from swecli.core.context_management.deferral import ToolIndex
from swecli.core.llm.types import ToolSchema

SERVICES = {
    "github": "a repository on GitHub",
    "gitlab": "a project on GitLab",
    "jira": "a Jira board",
    "slack": "a Slack workspace",
    "gmail": "a Gmail mailbox",
    "calendar": "a Google calendar",
    "notion": "a Notion workspace",
    "stripe": "a Stripe account",
    "postgres": "a PostgreSQL database",
    "redis": "a Redis server",
    "s3": "an Amazon S3 bucket",
    "docker": "the Docker daemon",
    "kubernetes": "a Kubernetes cluster",
    "sentry": "a Sentry organisation",
    "figma": "a Figma design",
    "spotify": "a Spotify library",
    "maps": "Google Maps",
    "weather": "the weather service",
    "shopify": "a Shopify store",
    "salesforce": "a Salesforce organisation",
    "linear": "a Linear team",
    "confluence": "a Confluence space",
    "twilio": "a Twilio account",
    "zoom": "a Zoom account",
    "drive": "Google Drive",
}
THINGS = ("issue", "file", "message", "user", "comment")
DEEDS = {
    "create": "Create a new {thing} in {place}.",
    "delete": "Delete a {thing} from {place} for good.",
    "list": "List the {thing}s of {place}, newest first.",
    "update": "Update the fields of a {thing} in {place}.",
}
TOOLS = [
    ToolSchema(
        f"mcp__{service}__{deed}_{thing}",
        text.format(thing=thing, place=place),
        {
            "type": "object",
            "properties": {
                f"{thing}_id": {"type": "string", "description": f"Identifier of the {thing}, as lists give it"},
                "fields": {"type": "object", "description": f"Values to set on the {thing}, by the name of the field"},
                "page": {"type": "integer", "description": "Which page of results, from 1 on (default: 1)"},
                "dry_run": {"type": "boolean", "description": "Only say what would be done, without doing it"},
            },
            "required": [f"{thing}_id"],
        },
        service,
    )
    for (service, place), thing, (deed, text) in itertools.product(SERVICES.items(), THINGS, DEEDS.items())
]
QUERIES = {
    "file a bug on github": "mcp__github__create_issue",
    "open a ticket in jira": "mcp__jira__create_issue",
    "report a defect on gitlab": "mcp__gitlab__create_issue",
    "get rid of a linear ticket": "mcp__linear__delete_issue",
    "show all tickets of the jira board": "mcp__jira__list_issue",
    "change a github bug": "mcp__github__update_issue",
    "write to somebody on slack": "mcp__slack__create_message",
    "erase a slack chat message": "mcp__slack__delete_message",
    "read my gmail messages": "mcp__gmail__list_message",
    "send a message with twilio": "mcp__twilio__create_message",
    "add a person to zoom": "mcp__zoom__create_user",
    "remove somebody's salesforce account user": "mcp__salesforce__delete_user",
    "who are the members of the notion workspace": "mcp__notion__list_user",
    "edit a stripe user": "mcp__stripe__update_user",
    "upload a document to google drive": "mcp__drive__create_file",
    "what files are in the s3 bucket": "mcp__s3__list_file",
    "drop a file from amazon s3": "mcp__s3__delete_file",
    "browse figma documents": "mcp__figma__list_file",
    "reply to a confluence page": "mcp__confluence__create_comment",
    "remarks on notion": "mcp__notion__list_comment",
    "take back a comment on github": "mcp__github__delete_comment",
    "rename a file in google drive": "mcp__drive__update_file",
    "see sentry problems": "mcp__sentry__list_issue",
    "resolve by modifying a sentry issue": "mcp__sentry__update_issue",
    "new calendar message": "mcp__calendar__create_message",
    "list kubernetes files": "mcp__kubernetes__list_file",
    "kill a docker file": "mcp__docker__delete_file",
    "make a redis user": "mcp__redis__create_user",
    "postgres accounts": "mcp__postgres__list_user",
    "alter a postgresql user": "mcp__postgres__update_user",
    "put a file into the shopify store": "mcp__shopify__create_file",
    "spotify library files": "mcp__spotify__list_file",
    "clear out comments in figma": "mcp__figma__delete_comment",
    "fix the text of a linear comment": "mcp__linear__update_comment",
    "google maps messages": "mcp__maps__list_message",
    "new weather issue": "mcp__weather__create_issue",
    "post a remark on gitlab": "mcp__gitlab__create_comment",
    "adjust a zoom person": "mcp__zoom__update_user",
    "fetch confluence documents": "mcp__confluence__list_file",
    "discard a salesforce ticket": "mcp__salesforce__delete_issue",
}


def test_paraphrased_queries() -> None:
    index = ToolIndex(TOOLS)
    assert len(TOOLS) == 500
    missed = {
        query: [tool.name for tool in index.search(query)]
        for query, wanted in QUERIES.items()
        if wanted not in [tool.name for tool in index.search(query)]
    }
    assert len(missed) <= 0.05 * len(QUERIES), missed


@pytest.mark.parametrize("query", ["mcp__jira__list_user", "list_user of jira"])
def test_a_name_in_the_query_comes_first(query: str) -> None:
    assert ToolIndex(TOOLS).search(query)[0].name == "mcp__jira__list_user"


@pytest.mark.parametrize("query", ["", "   ", "zzzz qqqq", "the of and", "\0\ud800"])
def test_queries_that_mean_nothing(query: str) -> None:
    assert ToolIndex(TOOLS).search(query) == ()


def test_words_in_other_scripts_and_camel_case() -> None:
    tools = [ToolSchema("getUserProfile", "Liest ein Profil.", {}), ToolSchema("b", "Читает файл", {})]
    index = ToolIndex(tools)
    assert index.search("user profile")[0].name == "getUserProfile"
    assert index.search("файл")[0].name == "b"
    assert ToolIndex([]).search("x") == ()
