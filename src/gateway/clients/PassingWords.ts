/**
 * Lists the words by which clients recognise a transient failure. They retry an error that contains such a word, regardless of its status.
 */

/**
 * Words that clients search for in an error's message or its JSON. Sources: pi 0.73 and its descendants, opencode 1.18, qwen-code 0.24. The
 * last row contains the signs of a context overflow, after which cline, opencode and pi shorten the context and send the request again.
 */
const words: ReadonlyArray<RegExp> = [
  /overload|capacity|provider.?returned.?error|rate.?limit|too.?many.?requests|throttl/,
  /\d*(?:408|409|425|429|5\d\d)\d*/,
  /unavailable|exhausted|server.?error|internal.?error|no_kv_space|temporar/,
  /network.?error|connection.?(?:error|refused|lost|reset|closed|aborted)|websocket.?(?:closed|error)/,
  /other side closed|fetch failed|upstream.?(?:connect|request)|reset before headers|socket.?hang.?up|ended (?:without|before)/,
  /http2 request did not|timed?.?out|terminated|premature|aborted|stream stall|no error details/,
  /rate increased too quickly/,
  /(?:retry|try|repeat) (?:your|the|this) request|try again|please retry|retry.?(?:delay|after)/,
  /context.?(?:length|window)|maximum context|too many tokens|prompt is too long|exceeds the/,
];

const passing = new RegExp(words.map(({ source }) => source).join("|"), "i");

/** Codes of Node. If a message or a document contains one, opencode retries without end, regardless of the status. */
const codes = /getaddrinfo|enotfound|eai_again|econn(?:refused|reset|aborted)|etimedout|epipe/i;

/**
 * Matches the whole word that contains a listed one. If a part of the word were left, clients could still recognise a listed word in it.
 */
const whole = new RegExp(`\\w*(?:${passing.source}|${codes.source})\\w*`, "gi");

/**
 * Replaces the words that look transient to clients with "[…]".
 *
 * @returns the text; undefined if nothing readable is left
 */
export const withoutPassing = (text: string): string | undefined => {
  const rest = text.replaceAll(whole, "[…]").replaceAll(/\[…\](?:[\s,.:;-]*\[…\])+/g, "[…]");
  return isTransientText(rest) || !/[\p{L}\p{N}]/u.test(rest) ? undefined : rest;
};

/** True if clients take the text for a transient failure and retry. */
export const isTransientText = (text: string): boolean => passing.test(text) || codes.test(text);
