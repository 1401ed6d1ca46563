/**
 * Shows one run on the page: its picture, and what can be taken away of it.
 */
import type { RunRecord } from "../../recorder/RunRecord.ts";
import { type Html, html } from "./Html.ts";
import { runAddress } from "./Overview.ts";
import { runPicture } from "./RunPicture.ts";

/**
 * The view of a run.
 *
 * @param now wall clock, milliseconds since the epoch
 */
export const runView = (record: RunRecord, now: number): Html => {
  const id = encodeURIComponent(record.run_id);
  return html`<nav class="crumbs" aria-label="This run"><a href="./">← All runs</a><span><a id="export" href="api/runs/${id}/export" download="run.json">Export (JSON)</a> · <a id="picture" href="picture.html?run=${id}" download="run.html">Save picture</a></span></nav>
    ${runPicture(record, { now, answers: true, tells: false }, runAddress)}`;
};
