/**
 * Lists the providers that continue a final assistant message of a request (a prefill), as data with its sources.
 *
 * For a provider without a declaration, the continuation asks the model to repeat the end of the shown text (the anchor), which works with
 * every provider. A model that thinks is also asked for the anchor, because no provider continues text after its own thoughts.
 */
import * as Schema from "effect/Schema";
import * as Json from "../../domain/Json.ts";
import { dropOldest } from "../../domain/Limits.ts";
import { PrefillForm } from "../../domain/SeamWords.ts";

/**
 * The condition under which a model thinks: `never`; `asked`, if the request asks for it; or `unless_off`, unless the request forbids it.
 */
export const Thinking = Schema.Literals(["never", "asked", "unless_off"]);
export type Thinking = typeof Thinking.Type;

/**
 * A declaration about the models of one origin.
 *
 * `origin` is scheme and host, optionally with the path to which the rule is limited; `model` is a model's name. `*` in either matches any
 * characters.
 */
export const PrefillRule = Schema.Struct({
  /** Without a scheme, an origin would match nothing and report no error. */
  origin: Schema.String.check(
    Schema.makeFilter((origin) =>
      origin === "*" || /^[^/]+:\/\/./.test(origin)
        ? undefined
        : "expected scheme and host, for example https://api.example, or *",
    ),
  ),
  model: Schema.NonEmptyString,
  /** The form in which a request continues its last message; `none` if the provider refuses a prefill or would start over. */
  form: Schema.Union([PrefillForm, Schema.Literal("none")]),
  /** True if the provider repeats the prefill before it continues. Default false. */
  echo: Schema.optionalKey(Schema.Boolean),
  /** The condition under which the model thinks. Default `asked`. */
  thinking: Schema.optionalKey(Thinking),
});
export type PrefillRule = typeof PrefillRule.Type;

/** Rules of one provider with common sources. Each is a row of the table in the docs. */
export interface DeclaredPrefills {
  readonly provider: string;
  readonly origins: ReadonlyArray<string>;
  readonly models: ReadonlyArray<string>;
  readonly form: PrefillRule["form"];
  readonly echo?: boolean;
  readonly thinking?: Thinking;
  readonly note: string;
  readonly sources: ReadonlyArray<string>;
}

const anthropic = ["https://api.anthropic.com"];
const gemini = ["https://generativelanguage.googleapis.com"];
const dashscope = ["https://dashscope*.aliyuncs.com"];
const moonshot = ["https://api.moonshot.ai", "https://api.moonshot.cn"];

/** The known behaviour of providers, as of late 2026. The first matching row applies; without a match the anchor is used. */
export const declared: ReadonlyArray<DeclaredPrefills> = [
  {
    provider: "Claude up to 4.5",
    origins: anthropic,
    models: [
      "claude-3*",
      "claude-haiku-4-5*",
      "claude-sonnet-4-5*",
      "claude-opus-4-5*",
      "claude-*-4-20*",
      "claude-opus-4-1*",
    ],
    form: "trailing",
    note: "without trailing white space; not with thinking, not with an output format",
    sources: ["claude-code#18731", "opencode#48846", "CLIProxyAPI#5319"],
  },
  {
    provider: "Claude 4.6 and later",
    origins: anthropic,
    models: ["claude-*"],
    form: "none",
    note: "400 “does not support assistant message prefill”",
    sources: ["platform.claude.com, migration guide", "QwenLM/qwen-code#8039", "CLIProxyAPI#5319"],
  },
  {
    provider: "OpenAI",
    origins: ["https://api.openai.com", "https://*.openai.azure.com"],
    models: ["*"],
    form: "none",
    note: "accepted, but the model starts over",
    sources: ["guidance#775", "sglang#3971"],
  },
  {
    provider: "Gemini 3.5-flash-lite, 3.6-flash",
    origins: gemini,
    models: ["gemini-3.5-flash-lite*", "gemini-3.6-*"],
    form: "none",
    note: "400 “Requests ending with a model turn are not supported”",
    sources: ["LibreChat-AI/agents#323", "pipecat#5821"],
  },
  {
    provider: "Gemini 2.0",
    origins: gemini,
    models: ["gemini-2.0-flash*"],
    form: "trailing",
    thinking: "never",
    note: "a trailing `model` turn, taken literally",
    sources: ["LibreChat-AI/agents#323", "pipecat#5821"],
  },
  {
    provider: "Gemini 2.5, 3-, 3.1-, 3.5-flash",
    origins: gemini,
    models: ["gemini-2.5-*", "gemini-3-flash*", "gemini-3.1-flash*", "gemini-3.5-flash*"],
    form: "trailing",
    thinking: "unless_off",
    note: "a trailing `model` turn, taken literally",
    sources: ["LibreChat-AI/agents#323", "pipecat#5821"],
  },
  {
    provider: "DeepSeek, base address `/beta`",
    origins: ["https://api.deepseek.com/beta"],
    models: ["deepseek-chat", "deepseek-coder"],
    form: "prefix",
    note: "`prefix: true`; unclear with thinking",
    sources: ["api-docs.deepseek.com, chat_prefix_completion", "opencode#27915"],
  },
  {
    provider: "DeepSeek V4, base address `/beta`",
    origins: ["https://api.deepseek.com/beta"],
    models: ["deepseek-v*"],
    form: "prefix",
    thinking: "unless_off",
    note: "`prefix: true`; not with thinking",
    sources: ["api-docs.deepseek.com, chat_prefix_completion", "opencode#27915"],
  },
  {
    provider: "Mistral",
    origins: ["https://api.mistral.ai"],
    models: ["mistral-*", "open-mistral-*", "ministral-*", "codestral-*", "devstral-*", "pixtral-*"],
    form: "prefix",
    echo: true,
    note: "`prefix: true`; repeats the prefill",
    sources: ["SillyTavern#2557", "vercel/ai#3256"],
  },
  {
    provider: "Qwen (Model Studio)",
    origins: dashscope,
    models: ["qwen*"],
    form: "partial",
    thinking: "unless_off",
    note: "`partial: true`; with `enable_thinking: false` only",
    sources: ["alibabacloud.com/help, partial mode"],
  },
  {
    provider: "Kimi",
    origins: moonshot,
    models: ["moonshot-v1-*", "kimi-k2-0*", "kimi-k2-turbo*"],
    form: "partial",
    note: "`partial: true`; K2.5 and later think by default and are asked for the anchor",
    sources: ["platform.moonshot.cn/docs/api/partial"],
  },
  {
    provider: "OpenRouter",
    origins: ["https://openrouter.ai"],
    models: ["*"],
    form: "none",
    note: "depends on the server: for the same model, one accepts it and another answers 400",
    sources: ["llmgateway#3278"],
  },
];

const builtIn: ReadonlyArray<PrefillRule> = declared.flatMap(({ echo, form, models, origins, thinking }) =>
  origins.flatMap((origin) =>
    models.map((model) => ({
      origin,
      model,
      form,
      ...(echo === undefined ? {} : { echo }),
      ...(thinking === undefined ? {} : { thinking }),
    })),
  ),
);

/** The parts of a request that select a rule. */
export interface PrefillRequest {
  readonly url: string;
  readonly model: string;
  readonly body: Json.JsonRecord;
}

/** The form of a request that ends with the text to continue. */
export interface Prefill {
  readonly form: PrefillForm;
  readonly echo: boolean;
}

/**
 * Chooses the prefill for a request's provider.
 *
 * @param rules the caller's own rules, which come before those of the package; the first match applies
 * @returns undefined if the anchor is used
 */
export const prefillOf = (request: PrefillRequest, rules: ReadonlyArray<PrefillRule> = []): Prefill | undefined => {
  const rule = find(rules, request) ?? find(builtIn, request);
  if (rule === undefined || rule.form === "none") return undefined;
  return isThinking(request.body, rule.thinking ?? "asked") ? undefined : { form: rule.form, echo: rule.echo === true };
};

const find = (rules: ReadonlyArray<PrefillRule>, { model, url }: PrefillRequest): PrefillRule | undefined => {
  const address = URL.parse(url);
  if (address === null || model === "") return undefined;
  const below = `${address.origin}${address.pathname}`;
  return rules.find((rule) => isMatch(rule.model, model) && isBelow(rule.origin.replace(/\/+$/, ""), below));
};

/**
 * True if an address is at or below a rule's origin. A rule without a path covers the whole origin. Compares only as many segments as the
 * rule has, so that a path cannot be mistaken for a host.
 */
const isBelow = (origin: string, address: string): boolean => {
  const depth = origin.split("/").length;
  const parts = address.split("/");
  return depth <= parts.length && isMatch(origin, parts.slice(0, depth).join("/"));
};

/** True if a string matches a pattern in which `*` matches any characters. */
const isMatch = (pattern: string, text: string): boolean => {
  const pieces = pattern.split("*");
  const [first = ""] = pieces;
  const last = pieces.at(-1) ?? "";
  if (pieces.length === 1) return pattern === text;
  if (!text.startsWith(first)) return false;
  let at = first.length;
  for (const piece of pieces.slice(1, -1)) {
    const found = text.indexOf(piece, at);
    if (found === -1) return false;
    at = found + piece.length;
  }
  return text.length - last.length >= at && text.endsWith(last);
};

/**
 * True if the model of a request thinks. Reads the spellings of all providers, because servers accept the spellings of other providers. An
 * unknown value counts as thinking.
 */
const isThinking = (body: Json.JsonRecord, thinking: Thinking): boolean => {
  if (thinking === "never") return false;
  const words = thinkingWords(body);
  if (words.some((word) => word === "on")) return true;
  return thinking === "unless_off" && !words.includes("off");
};

const thinkingWords = (body: Json.JsonRecord): ReadonlyArray<"on" | "off"> => {
  const inner = Json.record(body.request) ?? body;
  const config = Json.record(inner.generationConfig ?? inner.generation_config) ?? {};
  const thinkingConfig = Json.record(config.thinkingConfig ?? config.thinking_config) ?? {};
  const template = Json.record(body.chat_template_kwargs) ?? {};
  const reasoning = Json.record(body.reasoning);
  const said = [
    Json.record(body.thinking)?.type,
    body.enable_thinking,
    template.enable_thinking,
    template.thinking,
    body.reasoning_effort,
    body.prompt_mode,
    reasoning?.enabled ?? reasoning?.effort ?? reasoning?.max_tokens,
    thinkingConfig.thinkingBudget ?? thinkingConfig.thinking_budget,
    thinkingConfig.thinkingLevel ?? thinkingConfig.thinking_level,
  ];
  return said.flatMap((word) => (word === undefined || word === null ? [] : [isOff(word) ? "off" : "on"]));
};

/** `minimal` also counts as off, because it is the lowest setting of Gemini models that cannot stop thinking. */
const isOff = (word: unknown): boolean =>
  word === false || word === 0 || ["disabled", "none", "minimal", "off"].includes(String(word).toLowerCase());

/** Maximum origins and models whose refusal of a prefill is remembered. */
export const refusedPrefillsMax = 1_024;

/** Remembers refusals of a prefill by origin and model, so that the anchor is used from then on. At the maximum, the oldest is evicted. */
export class RefusedPrefills {
  readonly #refused = new Set<string>();

  add(request: PrefillRequest): void {
    const key = keyOf(request);
    this.#refused.delete(key);
    this.#refused.add(key);
    dropOldest(this.#refused, refusedPrefillsMax);
  }

  has(request: PrefillRequest): boolean {
    return this.#refused.has(keyOf(request));
  }
}

/** The refusals that this process has seen. */
export const refusedPrefills = new RefusedPrefills();

const keyOf = ({ model, url }: PrefillRequest): string => `${URL.parse(url)?.origin ?? ""} ${model}`;
