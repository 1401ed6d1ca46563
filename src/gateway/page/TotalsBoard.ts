/**
 * Renders the totals: recovered, asked and stopped runs, by rule, provider and model, and their cost.
 */
import { formatDollars } from "../../story/RunTokens.ts";
import { formatUtc, groupDigits } from "../../story/Times.ts";
import { actions } from "../../story/Words.ts";
import type { Totals } from "../api/Totals.ts";
import { type Html, html, label, none } from "./Html.ts";

/** Maximum number of rows in a table. The API returns all rows. */
const rowsMax = 8;

/** Renders the totals as one row of tiles. */
export const totalsTiles = (totals: Totals): Html => {
  const { asked, broken, recovered, stopped, tokens } = totals;
  return html`<section aria-labelledby="totals-title"><h2 id="totals-title">Totals <small>${scope(totals)}</small></h2>
    <dl class="totals">
      ${drawTile("Runs", totals.runs, totals.live === 0 ? none : html`<small>${totals.live} running</small>`, "quiet")}
      ${drawTile("Recovered silently", recovered, broken === 0 ? none : html`<small>of ${groupDigits(broken)} broken</small>`, "good")}
      ${drawTile("Asked a person", asked, totals.open_questions === 0 ? none : html`<small>${totals.open_questions} open</small>`, "ask")}
      ${drawTile("Stopped", stopped, none, stopped === 0 ? "quiet" : "bad")}
      ${drawTile("Tokens wasted", tokens.wasted, tokenTotal(tokens), "quiet")}
    </dl>
  </section>`;
};

/** Renders the totals by rule, and by provider and model. */
export const totalsTables = (totals: Totals): Html =>
  totals.by_rule.length === 0
    ? none
    : html`<section aria-labelledby="tables-title"><h2 id="tables-title">By rule and by model</h2><div class="split">${byRule(totals)}${byProvider(totals)}</div></section>`;

/** Shows the total number of tokens, including the wasted ones, and the cost of both if the models have prices. */
const tokenTotal = ({ cost_usd: cost, estimated, used, wasted }: Totals["tokens"]): Html =>
  used + wasted === 0
    ? none
    : html`<small>${estimated ? "about, " : ""}of ${groupDigits(used + wasted)}${cost === undefined ? "" : `; ${formatDollars(cost.wasted)} of ${formatDollars(cost.used + cost.wasted)}`}</small>`;

const scope = ({ complete, runs, since }: Totals): string => {
  if (runs === 0) return "";
  const from = since === undefined ? "" : ` since ${formatUtc(since)}`;
  return complete ? `of every run on record${from}` : `of the newest ${groupDigits(runs)} runs${from}`;
};

const drawTile = (name: string, value: number, note: Html, tone: string): Html =>
  html`<div class="${tone}"><dt>${name}${note}</dt><dd>${groupDigits(value)}</dd></div>`;

const byRule = ({ by_rule }: Totals): Html => {
  const most = Math.max(1, ...by_rule.map(({ decisions }) => decisions));
  return html`<div class="card"><table class="tally"><caption hidden>Decisions by rule</caption><thead><tr><th scope="col">Rule</th><th scope="col" class="gauge"><span hidden>share</span></th><th scope="col" class="n">Decisions</th></tr></thead><tbody>${by_rule
    .slice(0, rowsMax)
    .map(
      ({ action, decisions, rule }) =>
        html`<tr><td><code>${rule}</code></td><td class="gauge"><svg height="8" role="img" aria-label="${actions[action].word}"><rect class="${actions[action].tone}" width="${(decisions / most) * 100}%" height="8" rx="2"><title>${actions[action].word}</title></rect></svg></td><td class="n">${groupDigits(decisions)}</td></tr>`,
    )}</tbody></table></div>`;
};

const byProvider = ({ by_provider }: Totals): Html =>
  html`<div class="card"><table class="tally"><caption hidden>Runs by provider and model</caption><thead><tr><th scope="col">Provider and model</th><th scope="col" class="n">Runs</th><th scope="col" class="n">Recovered</th><th scope="col" class="n">Asked</th><th scope="col" class="n">Stopped</th></tr></thead><tbody>${by_provider
    .slice(0, rowsMax)
    .map(
      (it) =>
        html`<tr><td>${label(it.model ?? it.provider)}${it.model !== undefined && html` <small>${label(it.provider)}</small>`}</td><td class="n">${groupDigits(it.runs)}</td><td class="n">${groupDigits(it.recovered)}</td><td class="n">${groupDigits(it.asked)}</td><td class="n">${groupDigits(it.stopped)}</td></tr>`,
    )}</tbody></table></div>`;
