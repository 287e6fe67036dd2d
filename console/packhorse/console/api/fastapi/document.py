"""The OpenAPI document: what FastAPI makes of the routes, with the token that each needs and the problems that each may answer."""

import re
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from packhorse.console.api.models.problems import Fault, ProblemAnswer
from packhorse.console.api.problem import MEDIA_TYPE

_PROBLEMS = {
    "400": "The request can't be read, or can't be carried out as it is; nothing was done",
    "401": "No token, or one that nobody holds",
    "403": "The right for it is missing; nothing was done",
    "404": "The id is not known here",
    "409": "Somebody has acted, or owns it by now; nothing was done",
    "413": "The body is too large",
    "421": "The request asks for another host; nothing was done",
    "422": "The request is not as this document asks; nothing was done",
    "429": "Too many tokens of this address were refused",
    "500": "An error that nobody expected; the log has more under its number",
    "503": "Database, broker or registry is away, or a table or right is missing",
}
_REF = "#/components/schemas/{model}"


def documented(app: FastAPI) -> dict[str, Any]:
    """Return the document of *app*; every operation needs a token and may answer each of the problems."""
    made = get_openapi(
        title=app.title,
        version=app.version,
        summary=app.summary,
        description=app.description,
        routes=app.routes,
        separate_input_output_schemas=False,
    )
    schemas = made.setdefault("components", {}).setdefault("schemas", {})
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    schemas["Fault"] = Fault.model_json_schema(ref_template=_REF)
    problem = ProblemAnswer.model_json_schema(ref_template=_REF)
    problem.pop("$defs", None)
    schemas["Problem"] = problem
    made["components"]["securitySchemes"] = {
        "token": {
            "type": "http",
            "scheme": "bearer",
            "description": "A token of `packhorse operators token`.",
        }
    }
    made["security"] = [{"token": []}]
    for path in made["paths"].values():
        for operation in path.values():
            operation["responses"] |= _problems()
    return made


def methods_of(document: Mapping[str, Any], path: str) -> list[str]:
    """Return the methods that *document* has for *path*; none for a path that is not in it."""
    found = {
        method.upper()
        for pattern, methods in document["paths"].items()
        if re.fullmatch(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(pattern)), path)
        for method in methods
    }
    return sorted(found)


def _problems() -> dict[str, Any]:
    body = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {status: {"description": said, "content": body} for status, said in _PROBLEMS.items()}
