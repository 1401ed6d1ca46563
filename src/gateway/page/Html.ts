/**
 * Builds HTML from untrusted text, so template values are escaped unless they are HTML.
 *
 * Every label of a record (provider, model, tool, call, code, finish reason) comes from outside. Attributes are always double-quoted, so
 * text and attributes need the same escaping.
 */

/** Markup that is safe to embed. */
export class Html {
  readonly markup: string;
  constructor(markup: string) {
    this.markup = markup;
  }
}

/** A template value. `undefined` and `false` render as nothing. */
export type HtmlValue = Html | string | number | undefined | false | ReadonlyArray<HtmlValue>;

/**
 * Renders a template: `html\`<b title="${label}">${label}</b>\``.
 *
 * @returns the markup, with every value escaped
 */
export const html = (parts: TemplateStringsArray, ...values: ReadonlyArray<HtmlValue>): Html =>
  new Html(parts.map((part, index) => `${part}${markupOf(values[index])}`).join(""));

/** Empty markup. */
export const none: Html = new Html("");

/** Renders a label of a record: escapes it, and isolates it from the direction of the surrounding text. */
export const label = (text: string): Html => html`<bdi class="label">${text}</bdi>`;

const markupOf = (value: HtmlValue): string => {
  if (value === undefined || value === false) return "";
  if (value instanceof Html) return value.markup;
  if (typeof value === "string") return escapeText(value);
  return typeof value === "number" ? escapeText(String(value)) : value.map(markupOf).join("");
};

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
  "`": "&#96;",
};

const escapeText = (text: string): string =>
  replaceUnprintable(text).replace(/[&<>"'`]/g, (character) => entities[character] ?? character);

/**
 * Replaces control characters and lone surrogates, which are invalid in a document, and direction overrides, which could reverse
 * its text.
 */
const replaceUnprintable = (text: string): string =>
  text
    .toWellFormed()
    .replace(/[\p{Cc}\u202a-\u202e\u2066-\u2069]/gu, (it) => (it === "\n" || it === "\t" ? it : "\ufffd"));
