/**
 * Renders the document around a view: head, landmarks, the message area and the confirmation dialog.
 */
import { Html, html } from "./Html.ts";

/** Content Security Policy (CSP Level 3): the page may use only its own script, style and API. */
export const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src data:",
  "base-uri 'none'",
  // The search form sends GET requests.
  "form-action 'self'",
  "frame-ancestors 'none'",
].join("; ");

/**
 * Renders the document around a view. Its addresses are relative, because a token's prefix may precede the page's path.
 *
 * @param title the window's title
 * @param view the content of `main`
 * @param live true if the view changes without a new event, for example because a bar grows
 */
export const pageFrame = (title: string, view: Html, live: boolean): string =>
  html`${new Html("<!doctype html>")}
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>${title}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="page.css">
<script type="module" src="page.js"></script>
</head>
<body>
<a class="skip" href="#view">To the content</a>
<header class="bar-top"><div><a class="brand" href="./">stream<span>-</span>recovery</a><span class="feed" id="feed" data-feed="start"><span id="feed-words" role="status">connecting</span><small id="feed-age"></small></span></div></header>
<main id="view" tabindex="-1"${live && html` data-live="true"`}>${view}</main>
<footer><noscript><p>Without JavaScript this page shows what is on record, but it does not update and cannot answer.</p></noscript><p>Facts, lengths and labels; never a prompt or a response. <a href="api/openapi.json">API</a> · <a href="../metrics">Metrics</a></p></footer>
<dialog id="confirm" aria-labelledby="confirm-title"><h2 id="confirm-title"></h2><p id="confirm-run"></p><p id="confirm-text"></p><div><button type="button" class="plain" id="confirm-no"></button><button type="button" class="risky" id="confirm-yes"></button></div></dialog>
<p class="said" id="said" role="status"></p>
</body>
</html>
`.markup;
