"""A page with every part that a page may hold, from a template of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from jinja2 import ChoiceLoader, DictLoader

from mri_design.evaluation import Page, page, write_page

PARTS = """
{% extends "page.html.j2" %}
{% from "parts.html.j2" import beside, explained, explorer, figure with context %}
{% from "parts.html.j2" import inspector, numbers, picture, section, table with context %}
{% block title %}{{ text }}{% endblock %}
{% block verdict %}{{ text | words }}{% endblock %}
{% block pictures %}
{% for shown in first %}{% call picture(text, shown) %}{{ text }}{% endcall %}{% endfor %}
{% endblock %}
{% block explained %}{{ explained({text: text}) }}{% endblock %}
{% block facts %}<li>{{ text | words }}</li>{% endblock %}
{% block reading %}<p>{{ text | words }}</p>{% endblock %}
{% block sections %}
{% call section("Masks " ~ text) %}
{% call table(rows, {"a_psnr": ".1f"}, {text: text}) %}{{ text }}{% endcall %}
{% call beside() %}
{% call figure("a", drawing) %}{{ text }}{% endcall %}
{% call figure("b", drawing) %}{{ text }}{% endcall %}
{% endcall %}
{% for kind, content in sliders.items() %}{% call explorer(kind, content) %}{{ text }}{% endcall %}{% endfor %}
{% if inspected is defined %}{% call inspector(inspected) %}{{ text }}{% endcall %}{% endif %}
{% endcall %}
{% call section("What?") %}{% endcall %}
{% endblock %}
{% block numbers %}{{ numbers(summary) }}{% endblock %}
"""


@contextmanager
def templates(**texts: str) -> Iterator[None]:
    """Within this, templates of these names and texts are there, too."""
    environment = page._templates()
    named = DictLoader({f"{name}.html.j2": text.strip() for name, text in texts.items()})
    with mock.patch.object(environment, "loader", ChoiceLoader([named, environment.loader])):
        yield


def write_parts(path: Path, **facts: object) -> None:
    """Write the page with every part."""
    of_frame = {name: facts.pop(name) for name in ("warnings", "manifest", "command", "files") if name in facts}
    with templates(every_part=PARTS):
        write_page(path, Page("every_part", facts), None, **of_frame)
