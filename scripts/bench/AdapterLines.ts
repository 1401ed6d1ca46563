/**
 * The rows of the bench about adapters: the cost that each adds to its client.
 */
import type { AdapterName } from "./Adapters.ts";
import { median, spread } from "./Median.ts";
import * as Processes from "./Processes.ts";
import { type Group, type Row, type Size, spreadText } from "./Row.ts";

/** Number of text parts of one stream. */
const deltas = 2_000;

const line = (what: string, adapter: AdapterName) => ({
  what,
  run: async (size: Size): Promise<ReadonlyArray<Row>> => {
    const rounds = size.quick ? 6 : 20;
    const results = await Processes.several(size.processes, "adapters", { adapter, deltas, rounds });
    const more = spread(results.map((it) => it.more));
    const bare = median(results.map((it) => it.bare));
    const recovered = median(results.map((it) => it.recovered));
    return [
      {
        what,
        value: `${spreadText(more, 1, "µs more")}, ${recovered.toFixed(1)} against ${bare.toFixed(1)}`,
        bar: undefined,
        verdict: undefined,
        numbers: { us_more: more.median, us_min: more.min, us_max: more.max, us_bare: bare, us_recovered: recovered },
      },
    ];
  },
});

/** The adapters, each over the bare client. */
export const adapters: Group = {
  name: "adapters",
  lines: [
    line("openai SDK, `./fetch` below it", "fetch"),
    line("AI SDK streamText, `./ai-sdk`, `recover`", "ai_sdk"),
    line("AI SDK streamText, `./ai-sdk`, `live`", "ai_sdk_live"),
    line("Effect AI, `./effect-ai` over ProviderModel", "effect_ai"),
  ],
};
