/** The look of the reference: quiet surfaces, one accent, light and dark as the reader's system has it. */
export const STYLE = `
:root {
  color-scheme: light dark;
  --ground: #ffffff; --surface: #f6f7f9; --line: #e3e6eb; --ink: #16191f; --soft: #59616e;
  --accent: #0b6e6e; --accent-ground: #e3f3f2; --danger: #a4342a; --danger-ground: #fbeae8;
  --sans: ui-sans-serif, system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
  --mono: ui-monospace, "SF Mono", SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #101317; --surface: #171b21; --line: #2a3038; --ink: #e7eaee; --soft: #9ba5b2;
    --accent: #5cc7c2; --accent-ground: #14302f; --danger: #f0998f; --danger-ground: #3a1d1a;
  }
}
* { box-sizing: border-box; }
html { scroll-padding-top: 24px; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 16px/1.6 var(--sans); font-variant-numeric: tabular-nums; }
a { color: var(--accent); text-decoration: none; }
a:hover, main p a, main td a { text-decoration: underline; text-decoration-thickness: 1px; text-underline-offset: 3px; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 3px; }
.skip { position: absolute; left: -999px; }
.skip:focus { left: 16px; top: 16px; padding: 8px 12px; background: var(--ground); z-index: 1; }
.page { display: grid; grid-template-columns: 272px minmax(0, 1fr); min-height: 100vh; }
nav { position: sticky; top: 0; height: 100vh; overflow-y: auto; padding: 32px 24px; background: var(--surface); border-right: 1px solid var(--line); font-size: 14px; }
nav .brand { display: block; color: var(--ink); font-size: 17px; font-weight: 650; letter-spacing: -0.01em; }
nav .brand span { display: block; color: var(--soft); font-size: 13px; font-weight: 400; letter-spacing: 0; }
nav h2 { margin: 28px 0 8px; color: var(--soft); font-size: 12px; font-weight: 600; letter-spacing: 0.02em; }
nav ul { margin: 0; padding: 0; list-style: none; }
nav li a { display: flex; gap: 8px; align-items: baseline; padding: 4px 8px; margin: 0 -8px; border-radius: 6px; color: var(--ink); line-height: 1.4; }
nav li a:hover { background: var(--accent-ground); text-decoration: none; }
nav .verb { flex: none; width: 30px; }
main { padding: 56px 56px 120px; max-width: 1080px; }
h1 { margin: 0 0 4px; font-size: 36px; line-height: 1.2; letter-spacing: -0.02em; }
.lead { margin: 0 0 32px; color: var(--soft); font-size: 19px; }
.facts { max-width: 68ch; }
h2.part { margin: 72px 0 0; padding-bottom: 12px; border-bottom: 1px solid var(--line); font-size: 24px; letter-spacing: -0.015em; }
h2.part + p { margin-top: 12px; color: var(--soft); }
section { margin-top: 48px; }
section > h3 { margin: 0 0 8px; font-size: 20px; letter-spacing: -0.01em; }
section > h3 a { color: inherit; }
section > p:not(.route) { max-width: 68ch; }
.route { display: flex; gap: 12px; align-items: center; flex-wrap: wrap; margin: 0 0 16px; font: 14px/1.5 var(--mono); overflow-wrap: anywhere; }
.verb { color: var(--accent); font: 600 11px/1.6 var(--mono); letter-spacing: 0.03em; }
.route .verb { padding: 1px 8px; border-radius: 5px; background: var(--accent-ground); font-size: 12px; }
.verb.delete { color: var(--danger); }
.route .verb.delete { background: var(--danger-ground); }
h4 { margin: 28px 0 8px; font-size: 14px; font-weight: 600; }
code, pre { font-family: var(--mono); font-size: 0.86em; }
:not(pre) > code { padding: 1px 5px; border-radius: 4px; background: var(--surface); border: 1px solid var(--line); overflow-wrap: anywhere; }
pre { margin: 0; padding: 16px; overflow-x: auto; background: var(--surface); border: 1px solid var(--line); border-radius: 8px; line-height: 1.55; tab-size: 2; }
.scroll { overflow-x: auto; }
table { width: 100%; border-collapse: collapse; font-size: 14px; line-height: 1.5; }
th { padding: 0 16px 6px 0; color: var(--soft); font-weight: 500; text-align: left; white-space: nowrap; }
td { padding: 9px 16px 9px 0; border-top: 1px solid var(--line); vertical-align: top; }
td:first-child { white-space: nowrap; font: 13px/1.6 var(--mono); }
td:last-child { min-width: 240px; padding-right: 0; }
td .type, p.type { color: var(--soft); font: 13px/1.6 var(--mono); }
td .type { white-space: nowrap; }
td .needed { color: var(--accent); font-size: 12px; font-family: var(--sans); }
.depth1 { padding-left: 18px; } .depth2 { padding-left: 36px; } .depth3 { padding-left: 54px; } .depth4 { padding-left: 72px; }
.values { display: block; margin-top: 2px; color: var(--soft); font: 12px/1.6 var(--mono); }
details { margin-top: 12px; }
summary { padding: 4px 0; cursor: pointer; font-size: 14px; font-weight: 500; }
summary + pre, pre + pre { margin-top: 8px; }
@media (max-width: 860px) {
  .page { display: block; }
  nav { position: static; height: auto; padding: 20px; border-right: 0; border-bottom: 1px solid var(--line); }
  nav h2 { margin-top: 16px; }
  main { padding: 32px 20px 80px; }
  h1 { font-size: 30px; }
}
@media print { nav { display: none; } .page { display: block; } }
`;
