/**
 * Contains the style of a run's picture.
 */

/** CSS rules for the picture. `Style` defines the colours. */
export const pictureStyle = `
.run-head h1 { display: flex; flex-wrap: wrap; align-items: center; gap: .3rem .7rem; }
.run-head { margin-bottom: 1rem; }
.facts { display: flex; flex-wrap: wrap; gap: .45rem 1.8rem; margin-top: .6rem; font-size: .9rem; }
.facts > div { min-width: 0; } .facts dt { color: var(--soft); font-size: .76rem; } .facts dd { overflow-wrap: anywhere; }
.timeline .lane { display: grid; grid-template-columns: 9.5rem minmax(0, 1fr); align-items: center; gap: 0 1rem; }
.timeline .lane + .lane { margin-top: .15rem; }
.timeline .who { font-size: .84rem; color: var(--soft); display: flex; gap: .45rem; align-items: baseline; }
.timeline .who b { color: var(--ink); } .took { margin-left: auto; font-variant-numeric: tabular-nums; color: var(--soft); font-size: .84rem; }
.track { display: block; width: calc(100% - 16px); margin: 0 8px; overflow: visible; }
.track text { font: 11px var(--sans); fill: var(--soft); font-variant-numeric: tabular-nums; }
.grid { stroke: var(--line); stroke-width: 1; }
.bar.held, .key.held i { fill: var(--held); background: var(--held); }
.bar.reasoning, .key.reasoning i { fill: var(--reasoning); background: var(--reasoning); }
.bar.text, .key.text i { fill: var(--text); background: var(--text); }
.gap { stroke: var(--soft); stroke-width: 2; stroke-dasharray: 2 4; stroke-linecap: round; }
.gap.question { stroke: var(--ask); stroke-width: 3; stroke-dasharray: 1 6; }
.cut { stroke: var(--soft); stroke-width: 1.5; fill: none; }
.break { fill: var(--bad); stroke: var(--card); stroke-width: 1.5; }
.cross, .hands { stroke: var(--card); stroke-width: 1.8; fill: none; stroke-linecap: round; }
.stitch { stroke: var(--ink); stroke-width: 2; stroke-linecap: round; fill: none; } .stitch.under { stroke: var(--card); stroke-width: 4.5; }
.key.seam i { width: .9rem; height: .6rem; border-radius: 0; background: repeating-linear-gradient(to bottom, var(--ink) 0 2px, transparent 2px 4px); }
figure.text figcaption { font-size: .78rem; color: var(--soft); margin-top: .35rem; }
figure.text li { display: flex; flex-wrap: wrap; gap: .1rem .5rem; padding: .1rem 0; } figure.text figcaption .key { white-space: normal; } figure.text .key i { flex: none; }
.card + .card { margin-top: .8rem; }
.piece.p0 { fill: var(--text); } .piece.p1 { fill: color-mix(in srgb, var(--text) 62%, var(--card)); }
.key.piece.p0 i { background: var(--text); } .key.piece.p1 i { background: color-mix(in srgb, var(--text) 62%, var(--card)); }
p.seam { margin-top: .5rem; font-size: .9rem; padding-left: .7rem; border-left: 3px double var(--held); } p.seam.proven { border-color: var(--good); }
.refusal { font-size: .92rem; max-width: 75ch; } .refusal code { background: var(--card); }
.mark { fill: var(--quiet); stroke: var(--card); stroke-width: 1.5; }
.mark.terminal { fill: var(--good); } .mark.clock { fill: var(--ask); }
.timeline figcaption { display: flex; flex-wrap: wrap; gap: .25rem 1.1rem; font-size: .78rem; color: var(--soft); margin-top: .8rem; padding-top: .65rem; border-top: 1px solid var(--line); }
.key { display: inline-flex; align-items: center; gap: .4rem; }
.key i { width: .85rem; height: .55rem; border-radius: 2px; display: inline-block; }
.key.break i { background: var(--bad); border-radius: 50%; width: .65rem; height: .65rem; }
.key.clock i { background: var(--ask); border-radius: 50%; width: .65rem; height: .65rem; }
.key.terminal i { background: var(--good); width: .5rem; height: .5rem; transform: rotate(45deg); border-radius: 1px; }
.key.wait i, .key.question i { height: 0; border-top: 2px dotted var(--soft); border-radius: 0; } .key.question i { border-top: 3px dotted var(--ask); }
.attempts { display: grid; gap: .8rem; }
.attempt { background: var(--card); border: 1px solid var(--line); border-radius: 12px; padding: .9rem 1.1rem 1rem; border-left: 4px solid var(--held); }
.attempt.good { border-left-color: var(--good); } .attempt.bad { border-left-color: var(--bad); } .attempt.run { border-left-color: var(--run); }
.attempt > header { display: flex; flex-wrap: wrap; justify-content: space-between; gap: .2rem 1rem; }
.attempt > header small { margin-left: .35rem; }
.meters { display: grid; grid-template-columns: repeat(3, minmax(0, 1fr)); gap: .3rem 1rem; margin-top: .7rem; max-width: 34rem; }
.meters dt { color: var(--soft); font-size: .76rem; } .meters dd { font-size: .88rem; display: flex; flex-wrap: wrap; align-items: center; gap: .1rem .5rem; }
.steps { display: inline-flex; gap: 3px; } .steps i { width: .95rem; height: .38rem; border-radius: 2px; background: var(--faint); box-shadow: inset 0 0 0 1px var(--line); }
.steps i.on { background: var(--run); box-shadow: none; }
.counts { color: var(--soft); font-size: .85rem; margin-top: .5rem; }
.ledger { margin-top: .6rem; font-size: .88rem; border: 1px solid var(--line); border-radius: 8px; }
.ledger li { display: grid; grid-template-columns: minmax(7rem, 14rem) 2.5rem minmax(8rem, 1fr) 13rem; gap: .1rem .8rem; padding: .35rem .75rem; align-items: center; }
.ledger li + li { border-top: 1px solid var(--line); }
.ledger .tool { font-family: var(--mono); font-size: .86em; font-weight: 600; } .ledger .call, .ledger .effect { color: var(--soft); font-size: .84rem; }
.ledger .phase { display: flex; flex-wrap: wrap; align-items: center; gap: .1rem .5rem; } .ledger .steps i { width: .6rem; }
.ledger .good .on { background: var(--good); } .ledger .ask .on { background: var(--ask); } .ledger .bad .on { background: var(--bad); }
.ledger .bad .phase { color: var(--bad); font-weight: 600; } .ledger .ask .phase { color: var(--ask); font-weight: 600; }
.anchors { display: flex; flex-wrap: wrap; gap: .3rem .4rem; margin-top: .6rem; font-size: .8rem; }
.anchors li { background: var(--quiet-wash); border-radius: 6px; padding: .1rem .5rem; overflow-wrap: anywhere; max-width: 100%; }
.anchors li.loud { background: var(--bad-wash); color: var(--bad); } .anchors time { color: var(--soft); font-variant-numeric: tabular-nums; } .anchors .loud time { color: inherit; }
section.break { margin-top: .8rem; border-radius: 10px; padding: .75rem .95rem; background: var(--quiet-wash); }
section.break p + p { margin-top: .35rem; }
.failure { font-size: .86rem; } .failure b { color: var(--bad); margin-right: .35rem; } .failure bdi { font-family: var(--mono); font-size: .93em; color: var(--soft); }
.sentence { font-size: .97rem; max-width: 75ch; }
.decision { display: flex; flex-wrap: wrap; gap: .3rem .6rem; align-items: center; } .decision code { background: var(--card); font-weight: 600; }
.mode, .because { font-size: .85rem; } .because > span, .mode { color: var(--soft); } .because code { background: none; padding: 0; margin-right: .5rem; color: var(--soft); }
section.question { margin-top: .8rem; border: 1.5px solid var(--ask); background: var(--ask-wash); border-radius: 10px; padding: .85rem 1rem 1rem; }
section.question h3 { color: var(--ask); } section.question .sentence { margin-top: .25rem; } section.question .hint { margin-top: .6rem; color: inherit; opacity: .8; }
.choices { display: grid; gap: .45rem; margin-top: .7rem; } .choices li { display: grid; grid-template-columns: 9rem minmax(0, 1fr); gap: .15rem .9rem; align-items: center; font-size: .88rem; }
.risk { color: var(--bad); font-style: normal; font-weight: 600; }
.choice { width: 100%; }
button { font: 600 .9rem/1.2 var(--sans); color: #fff; background: var(--run); border: 1px solid transparent; border-radius: 8px; padding: .6rem .8rem; min-height: 2.6rem; cursor: pointer; }
button.plain { color: var(--ink); background: var(--card); border-color: var(--line); } button.risky { background: var(--bad); }
button.choice { color: var(--run); background: var(--card); border-color: color-mix(in srgb, var(--run) 45%, transparent); text-align: left; } button.choice.risky { color: var(--bad); border-color: color-mix(in srgb, var(--bad) 45%, transparent); } button.choice.plain { color: var(--ink); border-color: var(--line); }
button.choice:hover { filter: none; background: var(--run-wash); } button.choice.risky:hover { background: var(--bad-wash); } button.choice.plain:hover { background: var(--faint); }
button:hover { filter: brightness(.94); } button:disabled { opacity: .5; cursor: progress; }
@media (prefers-color-scheme: dark) { button:not(.choice, .plain) { color: #10151c; } }
.answered { margin-top: .7rem; font-size: .9rem; }
.plain li { padding: .15rem 0; }
@media (max-width: 46rem) {
  .timeline .lane { grid-template-columns: minmax(0, 1fr); } .timeline .lane + .lane { margin-top: .5rem; }
  .card { padding: .85rem; } .attempt { padding: .8rem .85rem .9rem; }
  .meters { gap: .3rem .6rem; } .meters dd { flex-direction: column; align-items: flex-start; } .steps i { width: .7rem; }
  .choices li { grid-template-columns: minmax(0, 1fr); } .choices li + li { margin-top: .4rem; }
  .ledger li { grid-template-columns: minmax(0, 1fr) auto; } .ledger .call { text-align: right; } .ledger .effect { grid-column: 1; } .ledger .phase { justify-self: end; }
}
@media print { .attempt, .card { break-inside: avoid; } }
`;
