/**
 * Renders the form that searches runs, which works without scripts, and builds the addresses of its result pages.
 */
import type { Rule } from "../../domain/Decision.ts";
import { labelCharactersMax } from "../../domain/Limits.ts";
import type { ApiInvalid } from "../api/Api.ts";
import type { SearchSent } from "../api/RunSearch.ts";
import type { Totals } from "../api/Totals.ts";
import { type Html, html, none } from "./Html.ts";

/** Filters of the list that a single click selects. */
export const filters = ["all", "broken", "asking", "live", "parked", "ended"] as const;
/** Choice of the runs that the page lists. */
export type Filter = (typeof filters)[number];

/** Fields of the form. `within` is the maximum age of a run's start; `since` overrides it. */
const fields = ["q", "within", "rule", "end", "model", "provider", "since", "until"] as const;
type Field = (typeof fields)[number];

/** Parameters of a request for the page. */
export interface Asked {
  readonly filter: Filter;
  /** Last run of the previous page. */
  readonly before: string | undefined;
  /** Non-empty fields of the form, as sent. */
  readonly sent: { readonly [F in Field]?: string };
}

/** Parses the query in the page's address. An unknown filter selects all runs. */
export const parseQuery = (query: URLSearchParams): Asked => ({
  filter: filters.find((it) => it === query.get("filter")) ?? "all",
  before: query.get("before") ?? undefined,
  sent: Object.fromEntries(
    fields.flatMap((field) => {
      const value = query.get(field)?.trim() ?? "";
      return value === "" ? [] : [[field, value]];
    }),
  ),
});

/** Converts a request to the input of `RunSearch.parse`. */
export const searchOf = ({ before, filter, sent: { within, ...sent } }: Asked): SearchSent => ({
  ...sent,
  since: sent.since ?? within,
  before,
  ...(filter === "all" ? {} : filter === "broken" ? { broken: "true" } : { state: filter }),
});

/** True if a field of the form restricts the list. */
export const isNarrowed = ({ sent }: Asked): boolean => Object.keys(sent).length > 0;

/** Builds the address of a list, relative to the page. */
export const listAddress = ({ before, filter, sent }: Asked): string => {
  const query = new URLSearchParams(sent);
  if (filter !== "all") query.set("filter", filter);
  if (before !== undefined) query.set("before", before);
  return query.size === 0 ? "./" : `./?${query.toString()}#runs`;
};

/**
 * Renders the form.
 *
 * @param totals provides the models, providers and rules to choose from
 * @param invalid the field that could not be parsed
 */
export const searchForm = (asked: Asked, totals: Totals, invalid: ApiInvalid | undefined): Html => {
  const { filter, sent } = asked;
  const isOpen = [sent.model, sent.provider, sent.since, sent.until].some((it) => it !== undefined);
  const rules = [
    ...new Set([...totals.by_rule.map(({ rule }) => rule), ...(sent.rule === undefined ? [] : [sent.rule])]),
  ];
  const models = totals.by_provider.flatMap(({ model }) => model ?? []);
  const form: FormParts = { sent, field: invalid?.field };
  return html`<form class="search" role="search" aria-label="Search runs" method="get" action="./#runs">
      ${filter !== "all" && html`<input type="hidden" name="filter" value="${filter}">`}
      ${withLabel("Run, model or provider", "wide", input(form, "q", "search"))}
      ${withLabel("Started", "", choice(form, "within", spans))}
      ${withLabel(
        "Rule",
        "",
        choice(
          form,
          "rule",
          rules.map((rule) => [rule, rule]),
        ),
      )}
      ${withLabel("End", "", choice(form, "end", endOptions(sent.end)))}
      <details class="more"${isOpen && html` open`}><summary>More</summary><div>
        ${withLabel("Model", "", input(form, "model", "text", "models"))}
        ${withLabel("Provider", "", input(form, "provider", "text", "providers"))}
        ${withLabel("From (UTC)", "", input(form, "since", "datetime-local"))}
        ${withLabel("Before (UTC)", "", input(form, "until", "datetime-local"))}
      </div></details>
      <span class="does"><button>Search</button>${isNarrowed(asked) && html` <a href="${listAddress({ ...asked, sent: {}, before: undefined })}">Clear</a>`}</span>
      ${drawOptions("models", models)}${drawOptions(
        "providers",
        totals.by_provider.map(({ provider }) => provider),
      )}
      ${invalid !== undefined && html`<p class="invalid" id="search-invalid" role="alert">Not searched. ${invalid.message}.</p>`}
    </form>`;
};

interface FormParts {
  readonly sent: Asked["sent"];
  /** Name of the field that could not be parsed. */
  readonly field: string | undefined;
}

const spans = [
  ["1h", "in the last hour"],
  ["24h", "in the last 24 hours"],
  ["7d", "in the last 7 days"],
] as const;

const endOptions = (sent: string | undefined): ReadonlyArray<readonly [string, string]> => {
  const states = ["completed", "stopped"];
  return [...states, ...(sent === undefined || states.includes(sent) ? [] : [sent])].map((it) => [it, it]);
};

const withLabel = (title: string, kind: string, control: Html): Html =>
  html`<label class="${kind}"><span>${title}</span>${control}</label>`;

const invalidAttributes = ({ field }: FormParts, name: Field): Html =>
  field === name ? html` aria-invalid="true" aria-describedby="search-invalid"` : none;

const input = (form: FormParts, name: Field, type: string, list?: string): Html => {
  const value = form.sent[name] ?? "";
  // A date input shows only valid dates, so a duration needs a text input.
  const shownAs =
    type === "datetime-local" && value !== "" && !/^\d{4}-\d\d-\d\dT\d\d:\d\d$/.test(value) ? "text" : type;
  return html`<input type="${shownAs}" name="${name}" value="${value}" maxlength="${labelCharactersMax}" autocomplete="off"${list !== undefined && html` list="${list}"`}${invalidAttributes(form, name)}>`;
};

const choice = (form: FormParts, name: Field, offered: ReadonlyArray<readonly [string | Rule, string]>): Html => {
  const sent = form.sent[name];
  const known = sent === undefined || offered.some(([value]) => value === sent) ? offered : [...offered, [sent, sent]];
  return html`<select name="${name}"${invalidAttributes(form, name)}><option value="">any</option>${known.map(
    ([value, title]) => html`<option value="${value ?? ""}"${value === sent && html` selected`}>${title}</option>`,
  )}</select>`;
};

const drawOptions = (id: string, values: ReadonlyArray<string>): Html =>
  html`<datalist id="${id}">${[...new Set(values)].map((value) => html`<option value="${value}"></option>`)}</datalist>`;
