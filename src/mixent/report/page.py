"""The page around a report: its frame and its style sheet."""

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>$title</title>
<style>
$style</style>
</head>
<body>
<header>
<h1>$title</h1>
$note
</header>
$index
<main>
$body
</main>
</body>
</html>
"""

STYLE = """:root { --paper: #ffffff; --ink: #222222; --soft: #5c5c5c; --line: #d9d9d9;
  --link: #0060a0; --best: #e3f0f9; --code: #f4f4f2; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #17191c; --ink: #e6e6e6; --soft: #a8a8a8; --line: #3a3d42;
    --link: #7cc0f0; --best: #14364d; --code: #23262a; }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 60rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
  overflow-wrap: anywhere; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .3rem; }
h2 { font-size: 1.2rem; line-height: 1.3; margin: 2.4rem 0 .6rem; padding-top: .8rem;
  border-top: 1px solid var(--line); }
p, ul { margin: .6rem 0; max-width: 42rem; }
ul { padding-left: 1.3rem; }
a { color: var(--link); }
nav ol { margin: 1rem 0; padding: 0; list-style: none; display: flex; flex-wrap: wrap;
  gap: .2rem 1.2rem; font-size: .95rem; }
.note, caption, figcaption { color: var(--soft); }
.wide { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .92rem; overflow-wrap: normal; }
caption { text-align: left; padding-bottom: .4rem; max-width: min(42rem, calc(100vw - 2rem)); }
th, td { padding: .3rem .8rem .3rem 0; text-align: left; vertical-align: baseline;
  border-bottom: 1px solid var(--line); }
th:not(:first-child), td:not(:first-child) { padding-left: .4rem; }
thead th { border-bottom: 2px solid var(--line); vertical-align: bottom; white-space: normal; }
tbody th { min-width: 7rem; }
tbody th { font-weight: 500; max-width: 16rem; }
.number { text-align: right; }
td.number { white-space: nowrap; }
.best { background: var(--best); }
figure { margin: 1.2rem 0; break-inside: avoid; }
figure img { display: block; max-width: 100%; height: auto; padding: .3rem;
  background: #ffffff; border-radius: 4px; }
figcaption { font-size: .92rem; margin-top: .4rem; max-width: 42rem; }
pre { background: var(--code); padding: .7rem .9rem; border-radius: 4px; overflow-x: auto;
  overflow-wrap: normal; font-size: .88rem; }
@media print {
  :root { --paper: #ffffff; --ink: #000000; --soft: #444444; --line: #bbbbbb;
    --link: #000000; --best: #eeeeee; --code: #f4f4f4; }
  body { max-width: none; padding: 0; font-size: 10.5pt; }
  nav { display: none; }
  h2 { break-after: avoid; }
  table, pre { break-inside: avoid; }
  pre { white-space: pre-wrap; }
}
"""
