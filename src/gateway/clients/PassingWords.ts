/**
 * Knows the words by which clients tell a fault that passes: an error that says one of them is asked again, whatever its status.
 */

/**
 * The words, as clients look for them in an error's message or its JSON: pi 0.73 and its descendants, opencode 1.18, qwen-code
 * 0.24, and what cline, opencode and pi take for a context that is too long, which they shorten and send again.
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

/** Codes of Node: at one in a message, or anywhere in a document, opencode asks again without end, whatever the status. */
const codes = /getaddrinfo|enotfound|eai_again|econn(?:refused|reset|aborted)|etimedout|epipe/i;

/** The words that begin or go on with one of the others: a part of a word would still be read as the word. */
const whole = new RegExp(`\\w*(?:${passing.source}|${codes.source})\\w*`, "gi");

/**
 * A text without the words by which clients tell a fault that passes: "[…]" stands in their place.
 *
 * @returns undefined if nothing is left to read
 */
export const withoutPassing = (text: string): string | undefined => {
  const rest = text.replaceAll(whole, "[…]").replaceAll(/\[…\](?:[\s,.:;-]*\[…\])+/g, "[…]");
  return saysPassing(rest) || !/[\p{L}\p{N}]/u.test(rest) ? undefined : rest;
};

/** Whether a client takes a text for that of a fault that passes, so that it asks again. */
export const saysPassing = (text: string): boolean => passing.test(text) || codes.test(text);
