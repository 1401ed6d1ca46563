/**
 * Every client of the HTTP/1.1 tables, in groups that usually agree.
 */
import { aiSdkClients } from "./AiSdk.ts";
import type { Client } from "./Client.ts";
import { effectClients } from "./Effect.ts";
import { rawClients } from "./Raw.ts";
import { sdkClients } from "./Sdk.ts";

export const clients: ReadonlyArray<Client> = [...rawClients, ...effectClients, ...sdkClients, ...aiSdkClients];

const names = (list: ReadonlyArray<Client>): ReadonlyArray<string> => list.map(({ name }) => name);

export const everyone = names(clients);
export const nodeHttp = ["node:http", "Effect HttpClient (node:http)"];
export const overUndici = everyone.filter((name) => !nodeHttp.includes(name));
export const raw = names(rawClients);
export const effect = names(effectClients);
export const sdks = ["openai", "@anthropic-ai/sdk"];
export const aiSdk = names(aiSdkClients);
export const bytes = [...raw, ...effect];
export const events = [...sdks, ...aiSdk];

/** Clients that expose the body of a provider with OpenAI's dialect. */
export const openai = [...raw, "openai", "AI SDK"];
export const anthropic = ["@anthropic-ai/sdk"];
export const gateway = ["AI SDK gateway"];

export const except = (list: ReadonlyArray<string>, ...left: ReadonlyArray<string>): ReadonlyArray<string> =>
  list.filter((name) => !left.includes(name));
