"""Names that a page would do something with if it did not escape them: 500 of them, each with a number of its own.

Whatever would run sets `window.hostile`, so that a test sees that it ran.
"""

from __future__ import annotations

from itertools import product

RUN = "window.hostile=1"
"""The script that no page may run."""

COUNT = 500

_MARKUP = (
    f"<script>{RUN}</script>",
    f"</script><script>{RUN}</script>",
    f"</ScRiPt ><script >{RUN}//",
    f"<!--<script>{RUN}</script>",
    f"--><script>{RUN}</script><!--",
    f"]]><script>{RUN}</script>",
    f"</title><script>{RUN}</script>",
    f"</style><script>{RUN}</script>",
    f"</textarea><script>{RUN}</script>",
    f"</template><script>{RUN}</script>",
    f"<img src=x onerror={RUN}>",
    f"<svg onload={RUN}>",
    f"<svg><script>{RUN}</script></svg>",
    f"<math><mtext></mtext><script>{RUN}</script></math>",
    f"<details open ontoggle={RUN}>",
    f"<input autofocus onfocus={RUN}>",
    f'<iframe srcdoc="<script>parent.{RUN}</script>"></iframe>',
    f"<object data=javascript:{RUN}></object>",
    f'<meta http-equiv=refresh content="0;url=javascript:{RUN}">',
    "<base href=https://hostile.invalid/>",
    "<link rel=stylesheet href=https://hostile.invalid/a.css>",
    "<style>@import url(https://hostile.invalid/b.css)</style>",
    f"<form action=javascript:{RUN}><button>press</button></form>",
    f"<a href=javascript:{RUN}>press</a>",
    "<a href=https://hostile.invalid/>away</a>",
    "<plaintext>",
    "<table><tr><td>",
    f"&lt;script&gt;{RUN}&lt;/script&gt;",
    f"&#60;script&#62;{RUN}&#60;/script&#62;",
    f"\\u003cscript\\u003e{RUN}\\u003c/script\\u003e",
    f"%3Cscript%3E{RUN}%3C/script%3E",
)
_ATTRIBUTES = (
    f'"><img src=x onerror={RUN}>',
    f"'><img src=x onerror={RUN}>",
    f'" onmouseover="{RUN}" x="',
    f"' onfocus='{RUN}' tabindex=0 x='",
    f"x onclick={RUN}",
    f"` onclick={RUN} `",
    f"javascript:{RUN}",
    f"JaVaScRiPt:{RUN}",
    f"java\tscript:{RUN}",
    f"data:text/html,<script>{RUN}</script>",
    "url(https://hostile.invalid/c.png)",
    f"expression({RUN})",
    "https://hostile.invalid/",
    "//hostile.invalid/",
    "#m1",
    "#/../..",
)
_TEMPLATES = (
    "{{7*7}}",
    "{{ ''.__class__.__mro__ }}",
    "{% for x in range(9) %}x{% endfor %}",
    "{% raw %}",
    "{% endraw %}{{7*7}}",
    "{# gone #}",
    "${7*7}",
    "#{7*7}",
    "<%= 7*7 %>",
    f"{{{{constructor.constructor('{RUN}')()}}}}",
    "%s%n%d",
    "%(name)s",
    "{0.__class__}",
    "$&$1$`$'",
)
_SCRIPTS = (
    f'"];{RUN};["',
    f"'];{RUN};['",
    f"`;{RUN};`",
    f'"}}]);{RUN};//',
    f'\\";{RUN};//',
    f"*/{RUN}/*",
    f"\u2028{RUN}\u2029",
    f"\n{RUN}\n",
    "__proto__",
    "constructor",
    "prototype",
    "toString",
    "hasOwnProperty",
    "length",
    "NaN",
    "Infinity",
    "-0",
    "1e999",
    "null",
    "undefined",
    "\\",
    "\\\\",
    '"',
    "'",
)
_CHARTS = (
    f'<a href="javascript:{RUN}">press</a>',
    '<a href="https://hostile.invalid/">away</a>',
    "<b>fat</b>",
    "<i>thin</i><br>next<br/>third",
    "<sub>low</sub><sup>high</sup>",
    '<span style="color:red;position:fixed;background:url(https://hostile.invalid/d.png)">red</span>',
    "<extra></extra>",
    "%{x}",
    "%{customdata[0]}",
    "%{label}<extra>%{value}</extra>",
    "%{x:$.2f}",
    "$\\frac{1}{2}$",
    "$$\\href{javascript:alert(1)}{x}$$",
    "a/b//c///d",
    "/",
    "//",
    "",
    " ",
)
_CELLS = (
    '=HYPERLINK("https://hostile.invalid/","press")',
    "+1+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(A1:A9)",
    "\t=1+1",
    "a,b;c\td",
    'a""b',
    "1,000",
    "0x10",
    "2026-01-01",
    f'<button onclick="{RUN}">press</button>',
    f'<td data-order="1" onclick="{RUN}">',
    "<tr></tr></tbody></table>",
)
_CHARACTERS = (
    "a\u202egpj.exe",
    "\u2066\u202d\u202eab\u202c\u2069",
    "\u200b\u200c\u200d\ufeff",
    "\u2028",
    "\u2029",
    "\x00",
    "\x01\x02\x1b[31m\x7f",
    "\x80\x85\x9b",
    "\r",
    "\r\n\v\f",
    "\t\t",
    "\ud800",
    "\udfff\ud800",
    "\ufffe\uffff\U0010ffff",
    "a" + "\u0301" * 60,
    "\U0001f1e6\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "\u0627\u0644\u0639\u0631\u0628\u064a\u0629",
    "<\u0338script>",
    "\uff1cscript\uff1e",
    "w" * 5_000,
    "<b>" * 500,
    "/".join("abcdefgh" * 40),
    "((((" * 200,
)

BASES = (*_MARKUP, *_ATTRIBUTES, *_TEMPLATES, *_SCRIPTS, *_CHARTS, *_CELLS, *_CHARACTERS)
_WRAPPED = ("{}", "jit(step)/{}/dot_general", "{}.py", "layers_0/attention/{}")


def hostile_names() -> list[str]:
    """Return each base alone, then inside texts like scopes, files and paths."""
    names = [wrapped.format(base) if wrapped != "{}" else base for wrapped, base in product(_WRAPPED, BASES)]
    return [f"{name}{number}" for number, name in enumerate(names[:COUNT])]
