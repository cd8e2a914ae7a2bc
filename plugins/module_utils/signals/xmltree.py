# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""XML of tools, read without ever following what it refers to: no entities, no DTD, no more than a bounded depth."""

from __future__ import annotations

from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument

DEPTH = 64


def read(text: str) -> Element:
    """The root element. Raises InvalidDocument, with the line, for what is malformed, cut, or defines entities."""
    builder, depth = TreeBuilder(), 0

    def start(name: str, attributes: dict) -> None:
        nonlocal depth
        depth += 1
        if depth > DEPTH:
            raise _fault(f"elements stand deeper than {DEPTH} in each other", parser.CurrentLineNumber)
        builder.start(name, attributes)

    def end(name: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(name)

    def refuse(*_given: object) -> None:
        raise _fault("it defines entities, which no tool's output needs", parser.CurrentLineNumber)

    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = start, end, builder.data
    parser.EntityDeclHandler = parser.UnparsedEntityDeclHandler = parser.ExternalEntityRefHandler = refuse
    parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
    try:
        parser.Parse(text.encode("utf-8", "replace"), True)
        return builder.close()
    except expat.ExpatError as error:
        raise _fault(f"it is malformed or breaks off: {expat.ErrorString(error.code)}", error.lineno) from error


def _fault(what: str, line: int) -> InvalidDocument:
    return InvalidDocument(f"XML that cannot be read: {what}", line=line)
