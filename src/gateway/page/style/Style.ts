/**
 * Contains the style of the page and of the exported file: one style sheet with light and dark colours. It loads no fonts, images or other
 * style sheets.
 */
import { pictureStyle } from "./PictureStyle.ts";

const base = `
:root {
  color-scheme: light dark;
  --ground: #f6f7f9; --card: #fff; --line: #e2e5ea; --ink: #1c2430; --soft: #5b6676; --faint: #e9ecf1;
  --run: #3056d3; --good: #0d7f56; --ask: #9a5b00; --bad: #bb2d45; --quiet: #5b6676;
  --run-wash: #e8edfc; --good-wash: #e0f3ea; --ask-wash: #fcf0d9; --bad-wash: #fbe7ea; --quiet-wash: #eceff3;
  --held: #c3cad5; --reasoning: #9d8be0; --text: #4d7cf0;
  --sans: system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "DejaVu Sans", sans-serif;
  --mono: ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #12161c; --card: #1a2029; --line: #2b3441; --ink: #e4e8ee; --soft: #9aa7b8; --faint: #232b36;
    --run: #8fabff; --good: #52c898; --ask: #f0b65a; --bad: #ff8b9c; --quiet: #9aa7b8;
    --run-wash: #1f2a4a; --good-wash: #14342a; --ask-wash: #2c2616; --bad-wash: #3d1f27; --quiet-wash: #262e39;
    --held: #465163; --reasoning: #7b69c4; --text: #5c87f5;
  }
}
* { box-sizing: border-box; }
html { font: 15px/1.5 var(--sans); color: var(--ink); background: var(--ground); -webkit-text-size-adjust: 100%; }
body { margin: 0; }
main, body > footer, .bar-top > div { max-width: 68rem; margin: 0 auto; padding: 0 1.25rem; }
main { padding-top: 1.25rem; padding-bottom: 2rem; }
h1, h2, h3, p, ul, ol, dl, dd, figure { margin: 0; padding: 0; }
ul, ol { list-style: none; }
h1 { font-size: 1.35rem; line-height: 1.3; font-weight: 650; letter-spacing: -0.01em; }
h2 { font-size: 1rem; font-weight: 650; margin: 1.6rem 0 .6rem; }
h3 { font-size: .95rem; font-weight: 650; }
small { font-size: .85em; color: var(--soft); font-weight: 400; }
a { color: var(--run); text-decoration-thickness: 1px; text-underline-offset: .15em; }
code, .mono { font-family: var(--mono); font-size: .86em; }
code { background: var(--faint); border-radius: 4px; padding: .1em .35em; overflow-wrap: anywhere; }
.label, bdi { overflow-wrap: anywhere; unicode-bidi: isolate; }
.hint, .empty { color: var(--soft); font-size: .87rem; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 12px; padding: 1rem 1.1rem; }
.card > h2:first-child { margin-top: 0; }
.chip { display: inline-block; font-size: .78rem; font-weight: 600; line-height: 1.35; border-radius: 99px; padding: .12rem .6rem; white-space: nowrap; letter-spacing: 0; }
.chip.run, .tone-run { color: var(--run); background: var(--run-wash); }
.chip.good, .tone-good { color: var(--good); background: var(--good-wash); }
.chip.ask, .tone-ask { color: var(--ask); background: var(--ask-wash); }
.chip.bad, .tone-bad { color: var(--bad); background: var(--bad-wash); }
.chip.quiet, .tone-quiet { color: var(--quiet); background: var(--quiet-wash); }
:focus-visible { outline: 3px solid var(--run); outline-offset: 2px; border-radius: 6px; }
.sr { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.skip { position: absolute; left: -99rem; }
.skip:focus { left: 1rem; top: .6rem; background: var(--card); padding: .5rem .8rem; z-index: 2; }
body > footer { color: var(--soft); font-size: .8rem; padding-bottom: 2rem; }
body > footer p + p { margin-top: .3rem; }
@media (prefers-reduced-motion: no-preference) { .pulse { animation: pulse 2s ease-in-out infinite; } }
@keyframes pulse { 50% { opacity: .45; } }
`;

const shell = `
.bar-top { background: var(--card); border-bottom: 1px solid var(--line); }
.bar-top > div { display: flex; align-items: center; gap: .4rem 1.2rem; min-height: 3.2rem; flex-wrap: wrap; padding-top: .4rem; padding-bottom: .4rem; }
.brand { font-weight: 650; color: var(--ink); text-decoration: none; margin-right: auto; }
.brand span { color: var(--good); }
.feed { font-size: .8rem; color: var(--soft); display: inline-flex; align-items: center; gap: .4rem; }
.feed::before { content: ""; width: .5rem; height: .5rem; border-radius: 50%; background: var(--held); }
.feed[data-feed="live"]::before { background: var(--good); }
.feed[data-feed="polling"], .feed[data-feed="silent"] { color: var(--ask); }
.feed[data-feed="polling"]::before, .feed[data-feed="silent"]::before { background: var(--ask); }
.feed[data-feed="lost"] { color: var(--bad); font-weight: 600; }
.feed[data-feed="lost"]::before { background: var(--bad); }
.feed small:empty { display: none; }
.notice { border-radius: 10px; padding: .6rem .95rem; margin-bottom: .8rem; font-size: .92rem; font-weight: 600; }
.notice.bad { color: var(--bad); background: var(--bad-wash); } .notice.ask { color: var(--ask); background: var(--ask-wash); }
nav.crumbs { display: flex; flex-wrap: wrap; gap: .4rem 1.2rem; justify-content: space-between; margin-bottom: .9rem; font-size: .9rem; }
.crumbs .cancel { font: inherit; color: var(--bad); background: none; border: 0; padding: 0; min-height: 0; width: auto; text-decoration: underline; text-decoration-thickness: 1px; text-underline-offset: .15em; cursor: pointer; }
.totals { display: grid; grid-template-columns: repeat(5, 1fr); gap: 1px; background: var(--line); border: 1px solid var(--line); border-radius: 12px; overflow: hidden; }
.totals > div { background: var(--card); padding: .8rem 1.1rem; display: flex; flex-direction: column-reverse; justify-content: flex-end; }
.totals dt { color: var(--soft); font-size: .82rem; }
.totals dd { font-size: 1.55rem; line-height: 1.25; font-weight: 650; letter-spacing: -0.02em; font-variant-numeric: tabular-nums; }
.totals dt small { display: block; font-size: .78rem; line-height: 1.3; }
.totals .good dd { color: var(--good); } .totals .ask dd { color: var(--ask); } .totals .bad dd { color: var(--bad); }
.split { display: grid; grid-template-columns: 1fr 1fr; gap: 1rem; margin-top: 1rem; }
.split > *, .attempts > * { min-width: 0; }
.tally { width: 100%; border-collapse: collapse; font-size: .87rem; }
.tally th { text-align: left; font-weight: 500; color: var(--soft); font-size: .8rem; padding: 0 0 .35rem; }
.tally td { padding: .22rem 0; vertical-align: middle; }
.tally .n { text-align: right; font-variant-numeric: tabular-nums; padding-left: .8rem; white-space: nowrap; }
.tally .gauge { width: 30%; padding-left: .8rem; }
.tally svg { display: block; width: 100%; }
.tally svg .run { fill: var(--run); } .tally svg .good { fill: var(--good); } .tally svg .ask { fill: var(--ask); } .tally svg .bad { fill: var(--bad); }
#runs { scroll-margin-top: .5rem; }
.search { display: grid; grid-template-columns: 2fr 1fr 1fr 1fr auto; gap: .6rem .8rem; align-items: end; margin-bottom: .8rem; }
.search label { display: block; min-width: 0; } .search label > span { display: block; font-size: .78rem; color: var(--soft); }
.search input, .search select { font: inherit; font-size: .88rem; color: var(--ink); background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: .3rem .55rem; width: 100%; height: 2.15rem; }
.search [aria-invalid] { border-color: var(--bad); }
.search .more, .search .invalid { grid-column: 1 / -1; margin: 0; order: 1; font-size: .85rem; } .search summary { color: var(--soft); cursor: pointer; }
.search .more > div { display: grid; grid-template-columns: repeat(4, 1fr); gap: .6rem .8rem; margin-top: .4rem; }
.search .invalid { color: var(--bad); } .search .does { display: flex; gap: .8rem; align-items: center; font-size: .88rem; }
.search button { height: 2.15rem; }
.filters { display: flex; flex-wrap: wrap; gap: .35rem; margin-bottom: .6rem; }
.filters a { font-size: .84rem; color: var(--soft); text-decoration: none; border: 1px solid var(--line); border-radius: 99px; padding: .2rem .75rem; background: var(--card); }
.filters a[aria-current] { color: var(--run); border-color: var(--run); background: var(--run-wash); font-weight: 600; }
.runs { background: var(--card); border: 1px solid var(--line); border-radius: 12px; overflow: hidden; }
.runs li + li { border-top: 1px solid var(--line); }
.runs a { display: grid; grid-template-columns: 8.4rem minmax(7rem, 1.2fr) minmax(6rem, 1fr) minmax(8rem, 1.1fr) 5.5rem; gap: .2rem 1rem; align-items: center; padding: .5rem 1.1rem; color: inherit; text-decoration: none; }
.runs a:hover { background: var(--faint); }
.runs a:focus-visible { outline-offset: -3px; }
.runs .what { font-size: .85rem; color: var(--soft); overflow-wrap: anywhere; }
.runs .what code { background: none; padding: 0; }
.runs .when { font-size: .82rem; color: var(--soft); text-align: right; white-space: nowrap; }
.runs .who { min-width: 0; } .runs .who b { font-weight: 600; } .runs .who small { display: block; line-height: 1.3; }
.spark { display: block; width: 100%; overflow: visible; }
.spark .bar { fill: var(--held); } .spark .bar.completed { fill: var(--text); opacity: .75; } .spark .bar.running { fill: var(--run); }
.asked .card + .card { margin-top: .8rem; }
.asked .card h3 { display: flex; flex-wrap: wrap; gap: 0 .7rem; align-items: baseline; } .asked .card h3 .mono { font-weight: 400; }
.asked .card { border-left: 4px solid var(--ask); } .asked .question { margin: 0; border: 0; padding: 0; background: none; }
.paths .card { border-left: 4px solid var(--quiet); } .paths .card.bad { border-left-color: var(--bad); } .paths .card.ask { border-left-color: var(--ask); } .paths .card.run { border-left-color: var(--run); }
.paths .card + .card { margin-top: .8rem; } .paths .asks:last-child { margin-bottom: 0; } .paths ul { font-size: .87rem; }
.paths .card h3 { display: flex; flex-wrap: wrap; gap: .3rem .7rem; align-items: center; } .paths h3 .mono { font-weight: 500; overflow-wrap: anywhere; min-width: 0; } .paths h3 .choice { margin-left: auto; width: auto; min-height: 2rem; padding: .35rem .8rem; }
.waits { color: var(--ask); font-weight: 600; }
.asks { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: .35rem 1.2rem; margin: .5rem 0 .7rem; font-size: .85rem; }
@media (min-width: 56rem) { .asked .choices { display: grid; grid-template-columns: 1fr 1fr; gap: .6rem 1.6rem; } .asked .choices li { align-content: start; } }
.asks dt { color: var(--soft); font-size: .78rem; } .asks dd { overflow-wrap: anywhere; } .asks .soon { color: var(--bad); font-weight: 600; }
.more { margin-top: .8rem; font-size: .9rem; }
dialog { color: var(--ink); background: var(--card); border: 1px solid var(--line); border-radius: 14px; padding: 1.4rem; max-width: min(30rem, calc(100vw - 2rem)); }
dialog h2 { margin-top: 0; }
dialog::backdrop { background: rgb(10 14 20 / .55); }
dialog p { margin-top: .5rem; overflow-wrap: anywhere; } dialog div { display: flex; gap: .6rem; justify-content: flex-end; margin-top: 1.2rem; flex-wrap: wrap; }
.said { position: fixed; left: 50%; bottom: 1.2rem; transform: translateX(-50%); background: var(--ink); color: var(--ground); border-radius: 10px; padding: .6rem 1rem; font-size: .9rem; max-width: calc(100vw - 2rem); overflow-wrap: anywhere; }
.said:empty { display: none; }
.said[data-bad="true"] { background: var(--bad); }
@media (max-width: 46rem) {
  main, body > footer, .bar-top > div { padding-left: .85rem; padding-right: .85rem; }
  .totals { grid-template-columns: 1fr 1fr; } .totals > div { padding: .6rem .85rem; }
  .totals > div:first-child { grid-column: 1 / -1; }
  .split { grid-template-columns: minmax(0, 1fr); }
  .search, .search .more > div { grid-template-columns: 1fr 1fr; } .search .wide { grid-column: 1 / -1; }
  .runs a { grid-template-columns: minmax(0, 1fr) auto; padding: .65rem .85rem; }
  .runs .who { grid-column: 1; grid-row: 1; } .runs .state { grid-column: 2; grid-row: 1; justify-self: end; }
  .runs .spark { grid-column: 1 / -1; } .runs .what { grid-column: 1; } .runs .when { grid-column: 2; }
}
`;

/** The style sheet of the page and of exported files. */
export const style: string = `${base}${pictureStyle}${shell}`;
