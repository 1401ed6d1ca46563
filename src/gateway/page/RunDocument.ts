/**
 * Writes the picture of a run as one HTML file that needs nothing else: no script, no request, its style inside.
 */
import { createHash } from "node:crypto";
import type { RunRecord } from "../../recorder/RunRecord.ts";
import { momentUtc } from "../../story/Times.ts";
import { Html, html } from "./Html.ts";
import { runPicture } from "./RunPicture.ts";
import { style } from "./style/Style.ts";

/**
 * The file of a run.
 *
 * @param record what the recorder gives
 * @param now wall clock, milliseconds since the epoch: what is under way lasts until then
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
<footer><p>Drawn ${momentUtc(now)} by effect-stream-recovery. Facts, lengths and labels; never a prompt or a response.</p></footer>
</body>
</html>
`.markup;
};
