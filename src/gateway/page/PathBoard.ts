/**
 * Renders the paths that are down, recovering or cooling down: since when, the next check, and the runs that wait. Renders
 * nothing if all are healthy.
 */
import type { PathStatus } from "../../paths/Paths.ts";
import { cooldownWords, describeDown, pathStanding, pathStandings } from "../../story/PathWords.ts";
import { formatCount, formatLasting, formatRelative, formatUtc } from "../../story/Times.ts";
import { isDisturbed, sortPaths } from "../api/PathList.ts";
import { type Html, html, label, none } from "./Html.ts";

/** Maximum paths shown, and cooldowns per path; the API lists all. */
const pathsMax = 10;
const cooldownsMax = 6;

/**
 * Renders the section of the paths.
 *
 * @param now wall clock, milliseconds since the epoch
 */
export const pathBoard = (paths: ReadonlyArray<PathStatus>, now: number): Html => {
  const shown = sortPaths(paths.filter(isDisturbed));
  if (shown.length === 0) return none;
  const more = shown.length - pathsMax;
  return html`<section aria-labelledby="paths-title" class="paths"><h2 id="paths-title">Paths to providers</h2>
    ${shown.slice(0, pathsMax).map((path) => card(path, now))}
    ${more > 0 && html`<p class="hint">And ${formatCount(more, "more path")}; see <a href="api/paths">the API</a>.</p>`}
  </section>`;
};

const card = (path: PathStatus, now: number): Html => {
  const standing = pathStanding(path);
  const { mark, means, tone, word } = pathStandings[standing];
  const id = `path-${encodeURIComponent(path.path)}`;
  return html`<article class="card ${tone}" id="${id}" aria-labelledby="${id}-name"><h3 id="${id}-name"><span class="mono">${label(path.path)}</span> <span class="chip ${tone}" title="${means}">${mark} ${word}</span>${standing === "down" && tryButton(path.path, id)}</h3>
    <dl class="asks">
      ${path.state !== "up" && html`<div><dt>${path.state === "down" ? "Down" : "Back"} since</dt><dd><time title="${formatUtc(path.since)}">${formatRelative(path.since, now)}</time></dd></div>`}
      ${standing === "down" && path.code !== undefined && html`<div><dt>Why</dt><dd>${label(describeDown(path.code))}${describeDown(path.code) !== path.code && html` <code>${path.code}</code>`}</dd></div>`}
      ${standing === "down" && html`<div><dt>Probed</dt><dd>${probeText(path, now)}</dd></div>`}
      <div><dt>Waiting</dt><dd>${path.waiting === 0 ? "no run" : formatCount(path.waiting, "run")}</dd></div>
    </dl>
    ${path.cooldowns.length > 0 && html`<ul class="plain">${path.cooldowns.slice(0, cooldownsMax).map((it) => cooldown(it, now))}</ul>`}
    ${path.cooldowns.length > cooldownsMax && html`<p class="hint">And ${formatCount(path.cooldowns.length - cooldownsMax, "cooldown")} more.</p>`}
  </article>`;
};

const tryButton = (path: string, id: string): Html =>
  html`<button type="button" class="choice" id="${id}-try" data-path="${path}" aria-describedby="${id}-name">Try now</button>`;

const probeText = ({ nextProbeAt, probes: made }: PathStatus, now: number): Html => {
  const asked = made === 0 ? "not yet" : made === 1 ? "once" : `${made} times`;
  return nextProbeAt === undefined ? html`${asked}` : html`${asked}, next ${formatRelative(nextProbeAt, now)}`;
};

const cooldown = ({ credential, kind, model, until }: PathStatus["cooldowns"][number], now: number): Html =>
  html`<li>${model === undefined ? "every model" : label(model)}: ${cooldownWords[kind]}, ${until <= now ? "over" : html`for <time title="${formatUtc(until)}">${formatLasting(until - now)}</time> more`}${credential !== undefined && credential !== "" && html` <small>credential <span class="mono">${credential}</span></small>`}</li>`;
