// SPDX-License-Identifier: Apache-2.0
#include "analysis/report/html_parts.h"

namespace driftscope::html {

// A is blue and B is orange (Okabe and Ito's colours, told apart with any colour vision); what
// differs is also marked by a line or a word.
std::string_view style_sheet() {
  return R"css(
:root{--ground:#fff;--ink:#1c2024;--soft:#5c656e;--line:#d5dade;--card:#f5f7f8;
--a:#0072b2;--b:#c26a00;--c:#6b4c9a;--d:#00775a;--mark:#b3261e}
@media (prefers-color-scheme:dark){:root{--ground:#15181b;--ink:#e6e9ec;--soft:#9aa4ad;
--line:#343b41;--card:#1e2327;--a:#56b4e9;--b:#e69f00;--c:#b79ae0;--d:#4cc9a0;--mark:#ff8a80}}
body{background:var(--ground);color:var(--ink);font:15px/1.5 system-ui,"DejaVu Sans",sans-serif;
margin:0 auto;max-width:1100px;padding:24px}
h1{font-size:22px;margin:0 0 12px}h2{font-size:17px;margin:28px 0 8px}
.verdict{background:var(--card);border-left:6px solid var(--mark);padding:12px 16px;border-radius:4px}
.verdict.same{border-color:var(--a)}.verdict b{font-size:18px}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{border-bottom:1px solid var(--line);padding:3px 8px;text-align:right;vertical-align:top}
th:first-child,td:first-child,td.text,th.text{text-align:left}
td:first-child{white-space:nowrap}
td.text,td.text:first-child{overflow-wrap:anywhere;white-space:pre-wrap;font-family:"DejaVu Sans Mono",monospace}
tr.moved td{font-weight:600}
.ribbon{background:var(--card);border-left:4px solid var(--line);font-family:"DejaVu Sans Mono",monospace;
font-size:13px;margin:6px 0;padding:8px;white-space:pre-wrap;overflow-wrap:anywhere}
.ribbon.a{border-color:var(--a)}.ribbon.b{border-color:var(--b)}
.ribbon span{border-right:1px solid var(--line)}
.ribbon .parted{outline:2px solid var(--mark);font-weight:700}.ribbon .after{color:var(--soft)}
ul{padding-left:20px}li.warning,li.error{color:var(--mark)}li b{text-transform:uppercase;font-size:12px}
pre{background:var(--card);overflow:auto;padding:8px;white-space:pre-wrap}
svg{display:block;width:100%;height:auto;margin:8px 0 18px}
svg text{fill:var(--soft);font:11px system-ui,"DejaVu Sans",sans-serif}
svg .title{fill:var(--ink);font-size:13px;font-weight:600}
svg path{stroke-linecap:round}svg .axis{stroke:var(--line);fill:none}svg .mark{stroke:var(--mark);stroke-dasharray:4 3}
svg .a{stroke:var(--a);fill:none}svg .b{stroke:var(--b);fill:none}svg .c{stroke:var(--c);fill:none}
svg .d{stroke:var(--d);fill:none}
svg text.a{fill:var(--a);stroke:none}svg text.b{fill:var(--b);stroke:none}
svg text.c{fill:var(--c);stroke:none}svg text.d{fill:var(--d);stroke:none}
svg .rail.a{fill:var(--a);stroke:none}svg .rail.b{fill:var(--b);stroke:none}
svg .rail.c{fill:var(--c);stroke:none}svg .rail.d{fill:var(--d);stroke:none}svg .cell{fill:var(--b);stroke:none}
svg .odd{fill:var(--mark);stroke:none}
img{max-width:100%}.note{color:var(--soft)}
)css";
}

}  // namespace driftscope::html
