/**
 * Says where requests of the toy protocol go.
 */
import type { Address } from "../../../src/provider/protocol/Address.ts";

export const address: Address = {
  family: "openai",
  examples: ["/v1/talk"],
  vendor: "https://toy.example/v1",
  path: () => "/talk",
  headers: (key) => (key === undefined ? {} : { "x-toy": key }),
  claim: ({ path }) => (path.endsWith("/talk") ? { model: "" } : undefined),
  isRequestBody: ({ turns }) => Array.isArray(turns),
  choices: () => undefined,
};
