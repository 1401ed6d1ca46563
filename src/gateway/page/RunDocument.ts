/**
 * Renders a run as one self-contained HTML file: the style is embedded, and the file contains no scripts and makes no requests.
 */
import { createHash } from "node:crypto";
import type { RunRecord } from "../../recorder/RunRecord.ts";
import { formatUtc } from "../../story/Times.ts";
import { Html, html } from "./Html.ts";
import { runPicture } from "./RunPicture.ts";
import { style } from "./style/Style.ts";

/**
 * Renders the file of a run.
 *
 * @param record the recorded run
 * @param now wall clock, in milliseconds since the epoch; unfinished attempts and gaps are drawn up to this time
 */
export const runDocument = (record: RunRecord, now: number): string => {
  const hash = createHash("sha256").update(style).digest("base64");
  const policy = `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'`;
  return html`${new Html("<!doctype html>")}
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${new Html(policy)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Run ${record.run_id}</title>
${new Html(`<style>${style}</style>`)}
</head>
<body>
<main>${runPicture(record, { now, answers: false, tells: false })}</main>
<footer><p>Drawn ${formatUtc(now)} by effect-stream-recovery. Facts, lengths and labels; never a prompt or a response.</p></footer>
</body>
</html>
`.markup;
};
