# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page's template. A Python file, because Ansible carries nothing else to the host that runs a module."""

from __future__ import annotations

STYLE = """
:root {
  color-scheme: light dark;
  --ground: #f6f7f9; --card: #fff; --ink: #1a2230; --quiet: #5a6675; --line: #dfe3e9; --code: #eef1f5;
  --fail: #b3261e; --fail-soft: #fdecea; --warn: #8a5a00; --warn-soft: #fff4dc;
  --unknown: #6a3fa0; --unknown-soft: #f1eafa;
  --pass: #17713b; --pass-soft: #e5f5eb; --note: #36506e; --note-soft: #e8eff7;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #12161c; --card: #1a2029; --ink: #e4e9f0; --quiet: #9aa7b6; --line: #2d3642; --code: #242c37;
    --fail: #ff9c94; --fail-soft: #3d1d1b; --warn: #f3c369; --warn-soft: #3a2d10;
    --unknown: #cdb2f0; --unknown-soft: #2d2340;
    --pass: #7fd6a0; --pass-soft: #15331f; --note: #a9c7ea; --note-soft: #1c2c3f;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 1280px; margin: 0 auto; padding: 32px 20px 64px; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 8px; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin: 0; overflow-wrap: anywhere; }
h3 { font-size: .95rem; margin: 24px 0 8px; color: var(--quiet); font-weight: 600; }
.summary { margin: 0 0 16px; font-size: 1.05rem; }
nav { display: flex; flex-wrap: wrap; gap: 8px; margin-bottom: 28px; }
nav a { color: inherit; text-decoration: none; border: 1px solid var(--line); background: var(--card);
  border-radius: 8px; padding: 6px 12px; }
nav a:hover, nav a:focus-visible { border-color: var(--quiet); }
section { background: var(--card); border: 1px solid var(--line); border-radius: 12px; padding: 20px 22px;
  margin: 0 0 24px; }
header.part { display: flex; flex-wrap: wrap; gap: 8px 14px; align-items: center; }
.badge { display: inline-block; border-radius: 999px; padding: 1px 10px; font-size: .82rem; font-weight: 600;
  white-space: nowrap; }
.fail { color: var(--fail); background: var(--fail-soft); }
.warn { color: var(--warn); background: var(--warn-soft); }
.unknown { color: var(--unknown); background: var(--unknown-soft); }
.pass { color: var(--pass); background: var(--pass-soft); }
.note { color: var(--note); background: var(--note-soft); }
.tiles { display: flex; flex-wrap: wrap; gap: 10px; margin: 16px 0 0; padding: 0; list-style: none; }
.tiles li { border-radius: 10px; padding: 8px 16px; min-width: 104px; }
.tiles b { display: block; font-size: 1.5rem; line-height: 1.2; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 4px 16px; margin: 16px 0 0; }
dt { color: var(--quiet); } dd { margin: 0; overflow-wrap: anywhere; }
.wide { overflow-x: auto; margin-top: 16px; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; }
th { text-align: left; color: var(--quiet); font-weight: 600; white-space: nowrap; }
th, td { padding: 8px 12px 8px 0; border-bottom: 1px solid var(--line); vertical-align: top; }
tr:last-child td { border-bottom: 0; }
td.long { min-width: 130px; overflow-wrap: anywhere; }
td.name { white-space: nowrap; }
td.nodes { min-width: 150px; line-height: 1.9; }
td.nodes code { white-space: nowrap; }
code { font: .88em ui-monospace, monospace; background: var(--code); border-radius: 4px; padding: 1px 4px;
  overflow-wrap: anywhere; }
details { display: inline; } summary { cursor: pointer; color: var(--quiet); display: inline; }
figure { margin: 20px 0 0; } figcaption { color: var(--quiet); font-size: .92rem; font-weight: 600; }
.plot { width: 100%; max-width: 900px; height: auto; display: block; font-size: 12px; }
.plot text { fill: var(--ink); } .plot text.quiet { fill: var(--quiet); } .plot text.bad { fill: var(--fail); }
.plot polyline { fill: none; stroke-width: 1.5; } .plot .grid { stroke: var(--line); stroke-width: 1; }
.plot .band { fill: var(--note-soft); } .plot .median { stroke: var(--note); } .plot .node { fill: var(--note); }
.plot .limit { stroke: var(--warn); stroke-dasharray: 6 4; }
.plot polyline.outlier { stroke: var(--fail); } .plot circle.outlier { fill: var(--fail); }
.plot.times { max-width: 1100px; } .times .part, .times .share { stroke: var(--card); stroke-width: 1; }
.times .part { fill: var(--note); opacity: .75; } .times .part.detected { fill: var(--fail); }
.times .part.decided, .times .part.gated { fill: var(--warn); } .times .part.firstStep { fill: var(--pass); }
.times .mark { fill: var(--ink); } .times .guess { fill: var(--card); stroke: var(--ink); stroke-width: 1.5; }
.times .track { fill: var(--unknown); opacity: .6; } .times .track.gate { fill: var(--quiet); }
.times .track.repair { fill: var(--warn); } .times .share { fill: var(--quiet); }
.times .productive { fill: var(--pass); } .times .wastedProgress { fill: var(--fail); }
.times .infrastructureRecovery { fill: var(--warn); } .times .programStartup { fill: var(--note); }
.times .unknown { fill: var(--unknown); }
.told { margin: 6px 0 0; }
.names { margin: 0; line-height: 1.9; } .quiet { color: var(--quiet); }
@media print {
  body { background: #fff; } nav { display: none; } section { border: 0; padding: 0; } tr { break-inside: avoid; }
}
"""

TEMPLATE = (
    """\
{% macro names(all, first) -%}
{% set shown, more = all | some(first) %}
{% for name in shown %}<code>{{ name }}</code>{{ " " if not loop.last }}{% endfor %}
{% if more %} <details><summary>+{{ more }}</summary> \
{% for name in all[first:] %}<code>{{ name }}</code> {% endfor %}</details>{% endif %}
{%- endmacro %}
{% macro cell(column, row) -%}
{% if column == "severity" %}
<td><span class="badge {{ tone(row.verdict, row.severity) }}">{{ row.severity }}</span></td>
{% elif column == "nodes" %}<td class="nodes">{{ names(row.nodes, limit) if row.nodes }}</td>
{% elif column in ("message", "hint") %}<td class="long">{{ row[column] }}</td>
{% elif row[column] is none %}<td class="quiet">–</td>
{% elif column == "found" and row.found == row.message %}<td class="long">{{ row.found }}</td>
{% elif column in ("component", "code") %}<td class="name">{{ row[column] }}</td>
{% else %}<td class="long">{% if row[column] %}<code>{{ row[column] }}</code>{% endif %}</td>
{% endif %}
{%- endmacro %}
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{{ title }}</title>
<style>"""
    + STYLE
    + """</style>
</head>
<body>
<main>
<h1>{{ title }}</h1>
<p class="summary"><span class="badge {{ verdict }}">{{ verdict }}</span> {{ summary }}</p>
{% if sections | length > 1 %}
<nav aria-label="Contents">
{% for part in sections %}
<a href="#{{ part.kind }}">{{ part.title }} <span class="badge {{ part.verdict }}">{{ part.status }}</span></a>
{% endfor %}
</nav>
{% endif %}
{% for part in sections %}
<section id="{{ part.kind }}">
<header class="part">
<h2>{{ part.title }}{% if part.name %} of {{ part.name }}{% endif %}</h2> \
<span class="badge {{ part.verdict }}">{{ part.status }}</span>
</header>
{% if part.summary %}
<p class="quiet told">{{ part.summary }}</p>
{% endif %}
{% if part.tiles %}
<ul class="tiles">
{% for verdict, count, label in part.tiles %}
<li class="{{ verdict }}"><b>{{ count }}</b>{{ label }}</li>
{% endfor %}
</ul>
{% endif %}
{% if part.facts %}
<dl>
{% for label, value in part.facts %}
<dt>{{ label }}</dt><dd><code>{{ value }}</code></dd>
{% endfor %}
</dl>
{% endif %}
{% for caption, svg in part.plots %}
<figure>
<figcaption>{{ caption }}</figcaption>
{{ svg | safe }}
</figure>
{% endfor %}
{% if part.rows %}
<div class="wide"><table>
<thead><tr>{% for header in part.columns.values() %}<th scope="col">{{ header }}</th>{% endfor %}</tr></thead>
<tbody>
{% for row in part.rows %}
<tr>
{% for column in part.columns %}{{ cell(column, row) }}{% endfor %}
</tr>
{% endfor %}
</tbody>
</table></div>
{% if part.more %}
<p class="quiet">… and {{ part.more }} more, in the JSON report.</p>
{% endif %}
{% endif %}
{% if part.unread %}
<h3>Could not be determined</h3>
<div class="wide"><table>
<thead><tr>{% for header in part_columns.values() %}<th scope="col">{{ header }}</th>{% endfor %}</tr></thead>
<tbody>
{% for row in part.unread %}
<tr><td><code>{{ row.path }}</code></td><td class="long">{{ row.message }}</td><td class="long">{{ row.hint }}</td></tr>
{% endfor %}
</tbody>
</table></div>
{% endif %}
{% if part.healthy %}
<h3>Healthy</h3>
<p class="names">{{ names(part.healthy, 60) }}</p>
{% endif %}
{% for label, all in part.lists %}
<h3>{{ label }}</h3>
<p class="names">{{ names(all, 60) }}</p>
{% endfor %}
</section>
{% endfor %}
</main>
</body>
</html>"""
)
