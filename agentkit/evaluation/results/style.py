"""The style sheet of the HTML report: light and dark, screen and paper.

The colours of the labels were searched so that any two stay apart for people who do not see red,
green or blue as others do; ``test_colours.py`` holds how far.
"""

STYLE = """
:root {
  color-scheme: light dark;
  --paper: #ffffff; --ink: #1c2330; --soft: #5b6577; --rule: #dfe3ea; --panel: #f5f7fa;
  --track: #e9edf3; --fill: #7aa5dd; --line: #22406b; --link: #1d5fb4; --warn: #fff4d6;
  --heat: 224 130 20;
  --invalid: #742f26; --argument: #e3a30d; --state: #cc9ef9; --recovery: #b58152;
  --spurious: #a55370; --missing: #017dd3; --response: #48d8c2; --abstained: #b8e45d;
  --passed: #207601; --fault: #989eab;
}
@media (prefers-color-scheme: dark) { :root {
  --paper: #14181f; --ink: #e4e8ef; --soft: #9aa5b6; --rule: #2d3542; --panel: #1b212b;
  --track: #262e3a; --fill: #3f6ca8; --line: #c3d6f2; --link: #8ab8f5; --warn: #3a3116;
  --heat: 235 150 50;
  --invalid: #ab3325; --argument: #ba750d; --state: #a47dc9; --recovery: #f5cfb4;
  --spurious: #f295c2; --missing: #2260ea; --response: #73ecff; --abstained: #aad44e;
  --passed: #46b479; --fault: #686f7b;
} }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 15px/1.45 system-ui, -apple-system, "Segoe UI", Roboto, Helvetica, Arial, sans-serif; }
main { max-width: 1060px; margin: 0 auto; padding: 28px 20px 60px; }
h1 { font-size: 1.7rem; margin: 0; letter-spacing: -.01em; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin: 2.4rem 0 .5rem; padding-top: .6rem;
  border-top: 1px solid var(--rule); }
h3 { font-size: 1rem; margin: 1.5rem 0 .3rem; }
p { margin: .3rem 0; max-width: 72ch; }
a { color: var(--link); }
.soft, caption, figcaption { color: var(--soft); font-size: .87rem; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(165px, 1fr)); gap: 10px;
  margin: 18px 0 0; padding: 0; }
.tiles div { background: var(--panel); border: 1px solid var(--rule); border-radius: 8px;
  padding: 10px 13px; }
.tiles dt { color: var(--soft); font-size: .82rem; }
.tiles dd { margin: 0; }
.tiles .value { font-size: 1.55rem; font-weight: 600; letter-spacing: -.02em; }
.tiles .more { color: var(--soft); font-size: .8rem; }
.notes { background: var(--warn); border-radius: 8px; margin: 14px 0 0;
  padding: 9px 13px 9px 30px; }
nav { margin-top: 14px; font-size: .9rem; }
nav a { margin-right: 1rem; white-space: nowrap; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; min-width: 45%; margin: .4rem 0 .6rem; font-size: .9rem; }
table.full { width: 100%; }
caption { text-align: left; padding: 0 0 .3rem; }
th { font-weight: 600; text-align: left; color: var(--soft); font-size: .82rem;
  vertical-align: bottom; }
th, td { padding: 4px 12px 4px 0; border-bottom: 1px solid var(--rule); }
td { vertical-align: top; overflow-wrap: anywhere; }
th[scope=row] { color: var(--ink); font-size: .9rem; font-weight: 500; vertical-align: top; }
tr.all th, tr.all td { border-top: 2px solid var(--rule); font-weight: 600; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.wide { min-width: 150px; width: 26%; }
.under { margin-top: 2px; }
.heat { background: rgb(var(--heat) / calc(var(--share) * 1.1)); padding-right: 8px; }
svg.bar { display: block; width: 100%; height: 18px; }
svg.histogram { width: 100%; height: auto; display: block; }
.histograms { display: grid; gap: 22px;
  grid-template-columns: repeat(auto-fit, minmax(300px, 1fr)); }
figure { margin: .6rem 0; }
.track { fill: var(--track); } .fill { fill: var(--fill); } .tail { opacity: .55; }
.line { stroke: var(--line); stroke-width: 1.6; vector-effect: non-scaling-stroke; }
.tick { fill: var(--soft); font-size: 11px; }
.segment { stroke: var(--paper); stroke-width: 1; vector-effect: non-scaling-stroke; }
.invalid_tool_call { --own: var(--invalid); } .argument_mismatch { --own: var(--argument); }
.state_mismatch { --own: var(--state); } .recovery_failure { --own: var(--recovery); }
.spurious_tool_call { --own: var(--spurious); } .missing_tool_call { --own: var(--missing); }
.response_mismatch { --own: var(--response); } .correct_abstention { --own: var(--abstained); }
.pass { --own: var(--passed); }
.unjudged, .checker_error, .gold_error { --own: var(--fault); }
.segment { fill: var(--own); }
.key { display: inline-block; width: .75em; height: .75em; border-radius: 2px; margin-right: .45em;
  background: var(--own); }
details { border: 1px solid var(--rule); border-radius: 8px; margin: 6px 0; padding: 5px 12px; }
details:target { border-color: var(--link); }
summary { cursor: pointer; overflow-wrap: anywhere; }
summary .soft { margin-left: .6em; }
dl.example { display: grid; grid-template-columns: 6.5em 1fr; gap: 3px 12px;
  margin: .6rem 0 .3rem; }
dl.example dt { color: var(--soft); font-size: .85rem; }
dl.example dd { margin: 0; min-width: 0; overflow-wrap: anywhere; }
code { font: .86em/1.4 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace;
  background: var(--panel); border-radius: 4px; padding: 1px 4px; overflow-wrap: anywhere; }
pre { background: var(--panel); border: 1px solid var(--rule); border-radius: 8px;
  padding: 10px 13px; overflow-x: auto; }
pre code { background: none; padding: 0; }
@media (max-width: 560px) {
  main { padding: 18px 12px 40px; }
  dl.example { grid-template-columns: 1fr; gap: 0; }
  dl.example dd { margin-bottom: 5px; }
  .tiles { grid-template-columns: 1fr 1fr; }
}
@media print {
  body { font-size: 10.5pt; }
  main { max-width: none; padding: 0; }
  nav { display: none; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  h2, h3 { break-after: avoid; }
  tr, details, figure, .tiles div { break-inside: avoid; }
  .scroll { overflow: visible; }
  table { font-size: 8pt; }
  .wide { min-width: 90px; width: 20%; }
  th, th[scope=row] { font-size: inherit; }
  th.number { white-space: normal; }
  .tiles { grid-template-columns: repeat(auto-fit, minmax(110px, 1fr)); font-size: .85em; }
}
"""
